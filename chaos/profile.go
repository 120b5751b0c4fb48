package chaos

import (
	"fmt"
	"strings"
)

// Profile is a named mixture of cuts, as one kind of user, network or machine
// makes them. It is nothing but the flags it stands for.
type Profile struct {
	Name   string
	Models string // what it stands for
	Source string // where its figures come from, or that they are assumed
	Cuts   []string
	// Reissue and Backoff are how its clients come back; 0: they do not.
	Reissue int
	Backoff string
	// NewSource: they come back from another address.
	NewSource bool
}

// Profiles lists the profiles. Every figure is a default: copy the printed
// --cut and change it.
func Profiles() []Profile {
	return []Profile{
		{
			Name:   "stop-button",
			Models: "somebody reads the output as it comes and presses stop",
			Source: "assumed: three in ten, at any moment of the call alike",
			Cuts:   []string{"fin@part(0.05,0.95):30%"},
		},
		{
			Name:   "impatient",
			Models: "people who will not wait: nobody leaves in the first 2 s, then 5.8 % of those left each second",
			Source: "abandonment of video start-up, Krishnan and Sitaraman, IMC 2012, taken as a stand-in; a hazard of 5.8 % a second is a mean of 16.7 s",
			Cuts:   []string{"fin@exp(16.7s,2s)"},
		},
		{
			Name:   "lid-close",
			Models: "a laptop is shut: silence, no FIN, and nobody comes back within the run",
			Source: "assumed: two in five. By its defaults Linux gives up on unacknowledged data after 13 to 30 minutes, and sends its first keep-alive probe after two hours",
			Cuts:   []string{"vanish@part(0.05,0.95):40%"},
		},
		{
			Name:      "wifi-to-cell",
			Models:    "a phone leaves the Wi-Fi: silence on the old path, and the call at once again from another address",
			Source:    "assumed: three in ten",
			Cuts:      []string{"vanish@part(0.05,0.95):30%"},
			Reissue:   3,
			Backoff:   "none",
			NewSource: true,
		},
		{
			Name:    "lb-idle",
			Models:  "a load balancer ends every stream that was quiet for 60 s, and the client calls again",
			Source:  "default idle time-out of AWS Application Load Balancers and of nginx; others: Cloudflare 100 s, undici 300 s",
			Cuts:    []string{"fin@quiet(1m)"},
			Reissue: 2,
			Backoff: "full-jitter(100ms,5s)",
		},
		{
			Name:    "deploy",
			Models:  "a new version every two minutes: all streams of the instance end at once, half of them hard, and all clients come back",
			Source:  "assumed period; a rolling restart ends connections with FIN, a killed process with RST",
			Cuts:    []string{"fin@every(2m):50%", "reset@every(2m):50%"},
			Reissue: 3,
			Backoff: "full-jitter(100ms,5s)",
		},
		{
			Name:    "flaky-peer",
			Models:  "a bad network: connections end in every way at any time",
			Source:  "assumed: mean time to failure 20 s, two FIN and two RST for each silence",
			Cuts:    []string{"fin@exp(20s):40%", "reset@exp(20s):40%", "vanish@exp(20s):20%"},
			Reissue: 3,
			Backoff: "full-jitter(100ms,5s)",
		},
	}
}

// FindProfile finds a profile by name.
func FindProfile(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("unknown profile %q: want one of %s", name, strings.Join(names, ", "))
}

// Flags are the command-line flags that a profile stands for.
func (p Profile) Flags() []string {
	var out []string
	for _, c := range p.Cuts {
		out = append(out, "--cut", c)
	}
	if p.Reissue > 0 {
		out = append(out, "--reissue", fmt.Sprint(p.Reissue), "--backoff", p.Backoff)
	}
	if p.NewSource {
		out = append(out, "--reissue-source")
	}
	return out
}
