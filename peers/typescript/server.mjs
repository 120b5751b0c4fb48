// An MCP server made with the official TypeScript SDK (v2), as its users make
// one: createMcpHandler behind node:http at /mcp, one slow tool, a log and
// Prometheus metrics at /metrics. The end-to-end tests of mcpflood flood it.
//
// The SDK aborts a signal when the client hangs up, and the tool stops. With
// --ignore-signal the tool never looks at the signal and works to its end.
import { appendFileSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { localhostHostValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod';

const TOOL = 'build_report';

// Bounds the memory of idempotency keys: the oldest are forgotten first.
const MAX_MAILED_KEYS = 100_000;

const USAGE = `usage: node server.mjs [flags]
  --addr HOST:PORT   loopback address to listen on; port 0 picks a free one (default 127.0.0.1:0)
  --port-file FILE   write host:port to this file once listening
  --log FILE         append the log to this file (default standard output)
  --ignore-signal    the tool does not look at its AbortSignal: a hang-up changes nothing
  --until-eof        end when standard input ends, so that no peer outlives a test
  --steps N          steps of a report (default 10)
  --step-time D      time of a step (default 1s)
  --tail-time D      time between the effect and the result (default 300ms)
`;

function parseFlags() {
    const string = value => ({ type: 'string', default: value });
    const { values } = parseArgs({
        options: {
            addr: string('127.0.0.1:0'),
            'port-file': string(''),
            log: string(''),
            'ignore-signal': { type: 'boolean', default: false },
            'until-eof': { type: 'boolean', default: false },
            steps: string('10'),
            'step-time': string('1s'),
            'tail-time': string('300ms'),
            help: { type: 'boolean', default: false }
        }
    });
    const steps = Number(values.steps);
    if (!Number.isInteger(steps) || steps < 1) throw new Error(`--steps ${values.steps}: must be a whole number of at least 1`);
    return {
        ...values,
        ...parseLoopback(values.addr),
        steps,
        stepMs: parseDuration('step-time', values['step-time']),
        tailMs: parseDuration('tail-time', values['tail-time'])
    };
}

/** Reads a Go duration such as "1m30s" or "1.5s"; returns milliseconds. */
function parseDuration(flag, text) {
    if (!/^([0-9.]+(h|m|s|ms|us|µs|ns))+$/.test(text) && text !== '0') {
        throw new Error(`--${flag} ${text}: must be a duration such as 100ms or 1s`);
    }
    const unitMs = { h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 1e-3, µs: 1e-3, ns: 1e-6 };
    let ms = 0;
    for (const [, number, unit] of text.matchAll(/([0-9.]+)(h|ms|m|s|us|µs|ns)/g)) ms += Number(number) * unitMs[unit];
    if (Number.isNaN(ms)) throw new Error(`--${flag} ${text}: must be a duration such as 100ms or 1s`);
    return ms;
}

/** Splits host:port and refuses every address that other machines could reach. */
function parseLoopback(addr) {
    const match = /^(127(?:\.\d{1,3}){3}|\[::1\]|localhost):(\d{1,5})$/.exec(addr);
    if (!match) throw new Error(`--addr ${addr} is not a loopback address: use 127.0.0.1:PORT or [::1]:PORT`);
    return { host: match[1].replace(/^\[|\]$/g, ''), port: Number(match[2]) };
}

let flags;
try {
    flags = parseFlags();
} catch (error) {
    console.error(`peer: ${error.message}\n\n${USAGE}`);
    process.exit(1);
}
if (flags.help) {
    console.log(USAGE);
    process.exit(0);
}

// ---- the log: one line, one write ------------------------------------------

const logFd = flags.log === '' ? undefined : openSync(flags.log, 'a');

function log(text) {
    const line = `${TOOL} ${text} t=${new Date().toISOString()}\n`;
    if (logFd === undefined) process.stdout.write(line);
    else appendFileSync(logFd, line);
}

/**
 * Keeps what a client sent inside one word of one line: "-" if it is empty,
 * quoted if it could be mistaken for anything else.
 */
function logValue(value) {
    if (value === undefined || value === '') return '-';
    const text = String(value);
    return text !== '-' && /^[!#-<>-[\]-~]+$/.test(text) ? text : JSON.stringify(text);
}

/** Names the request as far as the SDK shows it to a handler. */
function caller(key, ctx) {
    const trace = /^[0-9a-f]{2}-([^-]+)-[^-]+-[^-]+/.exec(ctx.mcpReq._meta?.traceparent)?.[1];
    const user = /^Bearer (.*)$/.exec(ctx.http?.req?.headers.get('authorization'))?.[1];
    return `id=${logValue(ctx.mcpReq.id)} marker=${logValue(key)} trace=${logValue(trace)} user=${logValue(user)}`;
}

// ---- the tool --------------------------------------------------------------

const counts = { inFlight: 0, steps: 0, cancelled: 0, finished: 0, effects: 0 };
const mailed = new Set();

/** The side effect; tells whether it happened. A key is mailed once; without a key every call mails. */
function mail(key) {
    if (key !== undefined && key !== '') {
        if (mailed.has(key)) return false;
        mailed.add(key);
        if (mailed.size > MAX_MAILED_KEYS) mailed.delete(mailed.values().next().value);
    }
    counts.effects++;
    return true;
}

/**
 * Reports a step that is done to a client that asked for it. A failure is
 * dropped on purpose: the one word that stops the work is the signal's.
 */
async function progress(done, ctx) {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    if (progressToken === undefined) return;
    const params = { progressToken, progress: done, total: flags.steps };
    await ctx.mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {});
}

async function buildReport({ month, idempotency_key: key }, ctx) {
    const signal = flags['ignore-signal'] ? undefined : ctx.mcpReq.signal;
    const who = caller(key, ctx);
    let done = 0;
    counts.inFlight++;
    try {
        while (done < flags.steps) {
            await sleep(flags.stepMs, undefined, { signal });
            done++;
            counts.steps++;
            log(`step ${done} of ${flags.steps} ${who}`);
            await progress(done, ctx);
        }
        signal?.throwIfAborted();
        if (mail(key)) log(`effect: e-mail to the team ${who}`);
        await sleep(flags.tailMs, undefined, { signal });
        counts.finished++;
        log(`finished ${who}`);
        return { content: [{ type: 'text', text: `report for ${month}: ${done} steps` }] };
    } catch (error) {
        if (signal?.aborted) {
            counts.cancelled++;
            log(`cancelled at step ${done} (stream closed) ${who}`);
        }
        throw error;
    } finally {
        counts.inFlight--;
    }
}

/** Makes the server of one request, as the SDK's stateless entry asks for. */
function newServer() {
    const server = new McpServer({ name: 'mcpflood-peer-typescript', version: '1.0.0' });
    server.registerTool(
        TOOL,
        {
            description: 'Builds the report of a month step by step and e-mails it to the team, once per idempotency key.',
            annotations: { readOnlyHint: false, idempotentHint: true },
            inputSchema: z.object({
                month: z.string().describe('the month to report on, such as 2026-09'),
                idempotency_key: z.string().optional().describe('the team is mailed once per key')
            })
        },
        buildReport
    );
    return server;
}

function metrics() {
    const metric = (name, kind, help, value) => `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${name}{tool="${TOOL}"} ${value}\n`;
    return [
        metric('target_in_flight', 'gauge', 'Calls being worked on.', counts.inFlight),
        metric('target_steps_total', 'counter', 'Steps done.', counts.steps),
        metric('target_cancelled_total', 'counter', 'Calls stopped before their end.', counts.cancelled),
        metric('target_finished_total', 'counter', 'Calls worked to their end.', counts.finished),
        metric('target_effects_total', 'counter', 'E-mails sent.', counts.effects)
    ].join('');
}

// ---- serving ---------------------------------------------------------------

const mcp = toNodeHandler(createMcpHandler(newServer));
const validHost = localhostHostValidation();

const http = createServer((req, res) => {
    const path = req.url.split('?')[0];
    if (path === '/metrics') {
        res.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
        res.end(metrics());
    } else if (path !== '/mcp') {
        res.writeHead(404).end();
    } else if (validHost(req, res)) {
        void mcp(req, res);
    }
});

http.on('error', error => {
    console.error(`peer: ${error.message}`);
    process.exit(1);
});

http.listen(flags.port, flags.host, () => {
    const { address, port, family } = http.address();
    const addr = family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
    console.error(`peer: listening on http://${addr}/mcp, metrics on http://${addr}/metrics`);
    if (flags['port-file'] === '') return;
    // The port file appears whole: it is written under another name and renamed.
    const tmp = join(dirname(flags['port-file']), `.${basename(flags['port-file'])}.tmp`);
    writeFileSync(tmp, addr);
    renameSync(tmp, flags['port-file']);
});

const end = () => process.exit(0);
process.on('SIGINT', end);
process.on('SIGTERM', end);
if (flags['until-eof']) process.stdin.on('end', end).resume();
