package target

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// FaultKind is one way in which the target can misbehave.
type FaultKind uint8

// The faults. See the package comment for what each does and how a client
// could see it.
const (
	RunOn FaultKind = iota
	SlowStop
	DeafBeforeHeaders
	DeafJSON
	DeafBody
	LyingLog
	EffectAfter
	DoubleEffect
	CrossTalk
	WrongID
	Spurious
	SlotLeak
	Brick
	CancelAny
	faultKinds // how many there are
)

// faultTable names and explains every fault; --help prints it.
var faultTable = [faultKinds]struct{ name, does, seen string }{
	RunOn: {"run-on",
		"a hang-up is noticed and ignored: all steps, the e-mail and the finished line still come",
		"work, effect and completion after the cut in log and counters; the in-flight gauge stays up"},
	SlowStop: {"slow-stop",
		"after a hang-up the work goes on for --stop-delay, then it stops as it should have at once",
		"a few steps after the cut, and a late cancelled line"},
	DeafBeforeHeaders: {"deaf-before-headers",
		"a hang-up before the response head is out is not heard, and the call runs to its end; later ones are honoured",
		"cuts at sent run on, cuts at mid stop"},
	DeafJSON: {"deaf-json",
		"hang-ups are not heard when the answer is JSON, and honoured when it is a stream",
		"JSON calls run on, streamed ones stop"},
	DeafBody: {"deaf-body",
		"work starts before the request body is read to its end, so the HTTP server never watches the connection and no hang-up is heard; write errors are ignored",
		"every cut runs on"},
	LyingLog: {"lying-log",
		"on a hang-up the cancelled line is logged at once, and nothing after it, but the work runs to its end",
		"the log says stopped; the counters and the in-flight gauge go on"},
	EffectAfter: {"effect-after",
		"the steps stop at once, but the e-mail is still sent",
		"an effect line after the cancelled line"},
	DoubleEffect: {"double-effect",
		"the e-mail is sent after step 2 instead of after the last, and its idempotency key is not looked at",
		"a cut after step 2 and a re-issue send two e-mails for one call"},
	CrossTalk: {"cross-talk",
		"each progress notification of the request is also sent on the stream of another live request",
		"a message with a foreign progress token"},
	WrongID: {"wrong-id",
		"a re-issue (same user, and same marker or, without one, same arguments) is answered with the id of the first request",
		"a result whose id was never asked on that stream"},
	Spurious: {"spurious",
		"the hang-up of one client also ends another live call as cancelled: by an error, by an isError result, or by closing the stream",
		"calls that nobody cut end as cancelled"},
	SlotLeak: {"slot-leak",
		"a cancelled call keeps one of --slots slots for ever; with none left a call waits --slot-wait and gets 503",
		"after enough cuts calls and re-issues are refused; discovery still works"},
	Brick: {"brick",
		"after one client hung up, every later request, discovery too, gets HTTP 500",
		"the canary fails and does not recover"},
	CancelAny: {"cancel-any",
		"a notifications/cancelled by POST ends the live call that has the id, whoever sends it",
		"a call ends as cancelled because another client named its id"},
}

func (k FaultKind) String() string {
	if k < faultKinds {
		return faultTable[k].name
	}
	return fmt.Sprintf("invalid(%d)", uint8(k))
}

// FaultKinds lists every fault.
func FaultKinds() []FaultKind {
	out := make([]FaultKind, faultKinds)
	for i := range out {
		out[i] = FaultKind(i)
	}
	return out
}

// Does says in one sentence what the fault does.
func (k FaultKind) Does() string { return faultTable[k].does }

// Seen says how a client and its witnesses could see the fault.
func (k FaultKind) Seen() string { return faultTable[k].seen }

// Fault is a fault that is switched on, for a share of the requests.
type Fault struct {
	Kind FaultKind
	// Share is the part of the requests that have the fault, over 0 up to 1.
	// 0 means 1: all of them. Which ones is drawn from the seed and their id.
	Share float64
}

// ParseFault reads "run-on" or "run-on=0.01".
func ParseFault(text string) (Fault, error) {
	name, share, has := strings.Cut(text, "=")
	f := Fault{Kind: faultKinds, Share: 1}
	for k := range faultKinds {
		if faultTable[k].name == name {
			f.Kind = k
		}
	}
	if f.Kind == faultKinds {
		return Fault{}, fmt.Errorf("unknown fault %q: want one of %s", name, faultNames())
	}
	if has {
		v, err := strconv.ParseFloat(share, 64)
		if err != nil || !(v > 0 && v <= 1) {
			return Fault{}, fmt.Errorf("bad share %q of fault %s: want a number over 0 up to 1", share, name)
		}
		f.Share = v
	}
	return f, nil
}

// String is the text that [ParseFault] reads.
func (f Fault) String() string {
	if f.Share == 0 || f.Share == 1 {
		return f.Kind.String()
	}
	return f.Kind.String() + "=" + strconv.FormatFloat(f.Share, 'g', -1, 64)
}

func faultNames() string {
	var names []string
	for _, k := range FaultKinds() {
		names = append(names, k.String())
	}
	return strings.Join(names, ", ")
}

// faultSet holds the faults of one request, a bit each.
type faultSet uint32

func (s faultSet) has(k FaultKind) bool { return s&(1<<k) != 0 }

func (s faultSet) names() []string {
	var out []string
	for _, k := range FaultKinds() {
		if s.has(k) {
			out = append(out, k.String())
		}
	}
	return out
}

// shares is the configured share of every fault; 0: the fault is off.
type shares [faultKinds]float64

func sharesOf(faults []Fault) shares {
	var out shares
	for _, f := range faults {
		out[f.Kind] = f.Share
		if f.Share == 0 {
			out[f.Kind] = 1
		}
	}
	return out
}

// draw decides which faults the request with this id has: a fixed hash of
// seed, fault and id, so that the same ids meet the same faults in every run.
func (s *shares) draw(seed uint64, id string) faultSet {
	var set faultSet
	for k, share := range s {
		if share == 0 {
			continue
		}
		if share == 1 || unit(seed, FaultKind(k).String(), id) < share {
			set |= 1 << k
		}
	}
	return set
}

// unit hashes to a number in [0, 1).
func unit(seed uint64, purpose, id string) float64 {
	return float64(hash(seed, purpose, id)>>11) / (1 << 53)
}

// hash is FNV-1a, finished by splitmix64 because FNV spreads the last bytes of
// its input badly and ids differ there.
func hash(seed uint64, purpose, id string) uint64 {
	h := fnv.New64a()
	var b [8]byte
	for i := range b {
		b[i] = byte(seed >> (8 * i))
	}
	h.Write(b[:])
	h.Write([]byte(purpose))
	h.Write([]byte{0})
	h.Write([]byte(id))
	z := h.Sum64() + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
