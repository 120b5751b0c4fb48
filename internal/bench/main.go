// Command bench measures what mcpflood's driver costs beside a plain net/http
// client in the same run: user-space memory a stream, and how late cuts are. It
// starts the reference server and every client as processes of their own, all
// on loopback, and prints ratios.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpflood/mcpflood/target"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	few, many, cuts int
	hold            time.Duration
	repeat          int
}

func run() error {
	var o options
	flag.IntVar(&o.few, "few", 2000, "streams of the smaller measurement")
	flag.IntVar(&o.many, "many", 10000, "streams of the larger one")
	flag.IntVar(&o.cuts, "cuts", 2000, "cuts at random moments within five seconds")
	flag.DurationVar(&o.hold, "hold", 20*time.Second, "how long streams are held before memory is read")
	flag.IntVar(&o.repeat, "repeat", 3, "runs of the cut measurement; the median is shown")
	flag.Parse()
	if flag.NArg() > 0 {
		return role(flag.Args())
	}
	url, stop, err := startServer()
	if err != nil {
		return err
	}
	defer stop()
	fmt.Printf("memory: streams held %s, an event a second each; bytes a stream = (RSS at %d − RSS at %d) / %d\n", o.hold, o.many, o.few, o.many-o.few)
	ours, err := perStream("mcpflood", url, o)
	if err != nil {
		return err
	}
	plain, err := perStream("net/http", url, o)
	if err != nil {
		return err
	}
	fmt.Printf("  ratio      %.2f of net/http\n\n", ours/plain)
	return lateness(url, o)
}

// perStream measures one client at two sizes.
func perStream(client, url string, o options) (float64, error) {
	var rss [2]float64
	for i, n := range []int{o.few, o.many} {
		out, err := child("hold", client, url, strconv.Itoa(n), o.hold.String())
		if err != nil {
			return 0, err
		}
		if rss[i], err = strconv.ParseFloat(strings.TrimSpace(out), 64); err != nil {
			return 0, err
		}
	}
	per := (rss[1] - rss[0]) / float64(o.many-o.few)
	fmt.Printf("  %-10s %6.0f bytes a stream (RSS %.1f and %.1f MiB)\n", client, per, rss[0]/(1<<20), rss[1]/(1<<20))
	return per, nil
}

// lateness measures how late cuts are, runs of both clients in turn.
func lateness(url string, o options) error {
	fmt.Printf("cut lateness: planned to real moment of %d cuts on %d live streams, median of %d runs\n", o.cuts, o.cuts, o.repeat)
	clients := []string{"mcpflood", "net/http"}
	figures := map[string][][3]float64{}
	for range o.repeat {
		for _, client := range clients {
			out, err := child("cut", client, url, strconv.Itoa(o.cuts))
			if err != nil {
				return err
			}
			var f [3]float64
			if _, err := fmt.Sscan(out, &f[0], &f[1], &f[2]); err != nil {
				return fmt.Errorf("%s printed %q: %w", client, out, err)
			}
			figures[client] = append(figures[client], f)
		}
	}
	var med [2][3]float64
	for i, client := range clients {
		for q := range 3 {
			med[i][q] = median(figures[client], q)
		}
		fmt.Printf("  %-10s p50 %7.0f µs   p99 %7.0f µs   p99.9 %7.0f µs\n", client, med[i][0], med[i][1], med[i][2])
	}
	fmt.Printf("  ratio      p50 %.2f   p99 %.2f   p99.9 %.2f of net/http with time.AfterFunc\n", med[0][0]/med[1][0], med[0][1]/med[1][1], med[0][2]/med[1][2])
	return nil
}

func median(runs [][3]float64, q int) float64 {
	sorted := slices.SortedFunc(slices.Values(runs), func(a, b [3]float64) int { return cmp.Compare(a[q], b[q]) })
	return sorted[len(sorted)/2][q]
}

// child runs this program in a role and returns what it prints.
func child(args ...string) (string, error) {
	cmd := exec.Command(os.Args[0], append([]string{"--"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return out.String(), nil
}

// startServer starts the reference server in a process of its own.
func startServer() (url string, stop func(), err error) {
	cmd := exec.Command(os.Args[0], "--", "server")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // its end ends the server
	if err != nil {
		return "", nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { stdin.Close(); cmd.Wait() }
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("the server did not start: %w", err)
	}
	return strings.TrimSpace(line), stop, nil
}

func serve() error {
	server, err := target.New(target.Config{Steps: 100000, StepTime: time.Second})
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s%s\n", ln.Addr(), target.PathMCP)
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		server.Close()
	}()
	return server.Serve(ln)
}

func role(args []string) error {
	switch args[0] {
	case "server":
		return serve()
	case "hold", "cut":
		n, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		c, err := newClient(args[1], args[2])
		if err != nil {
			return err
		}
		if args[0] == "cut" {
			return c.cut(n)
		}
		hold, err := time.ParseDuration(args[4])
		if err != nil {
			return err
		}
		return c.hold(n, hold)
	}
	return fmt.Errorf("unknown role %q", args[0])
}
