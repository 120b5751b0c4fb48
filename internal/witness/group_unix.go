//go:build unix

package witness

import (
	"os/exec"
	"syscall"
)

// lead makes cmd the leader of a process group of its own: a Ctrl-C at the
// terminal does not reach it, and all its children can be ended at once.
func lead(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks the group to end; kill ends it. A group that is gone is fine.
func terminate(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }
func kill(pid int)      { _ = syscall.Kill(-pid, syscall.SIGKILL) }
