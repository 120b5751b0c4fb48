//go:build !unix

package witness

import (
	"os"
	"os/exec"
)

// There are no process groups here: only the shell itself is ended.
func lead(*exec.Cmd)    {}
func terminate(pid int) { kill(pid) }
func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
