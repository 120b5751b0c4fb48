//go:build unix

package flood

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// usage measures this process.
type usage struct {
	at    time.Time
	spent time.Duration
	files int // descriptors that are no streams, when it began
}

func startUsage() *usage {
	u := &usage{at: time.Now(), spent: cpuTime()}
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil {
		u.files = len(entries)
	}
	return u
}

// read gives the CPU share since the last call, of all CPUs the process may
// use, and the resident bytes (0 where they cannot be known).
func (u *usage) read() (cpu float64, rss int64) {
	now, spent := time.Now(), cpuTime()
	if d := now.Sub(u.at); d > 0 {
		cpu = min(1, float64(spent-u.spent)/float64(d)/float64(runtime.GOMAXPROCS(0)))
	}
	u.at, u.spent = now, spent
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 1 {
			pages, _ := strconv.ParseInt(f[1], 10, 64)
			rss = pages * int64(os.Getpagesize())
		}
	}
	return cpu, rss
}

func cpuTime() time.Duration {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// openFileLimit is how many descriptors the process may hold.
func openFileLimit() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 1024
	}
	return int(min(uint64(l.Cur), 1<<30))
}
