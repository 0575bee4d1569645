package housetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Canary is in the log and the crash of the test.
const Canary = "a dusty corner behind the sofa"

// LeaveFile lets a robot have a log or a crash to send, as its programs do, and returns its path.
func LeaveFile(root string, n int, crash bool) (string, error) {
	name, text := fmt.Sprintf("outgoing/fault-%d.log", n), Canary+fmt.Sprintln(n)
	if crash {
		name = fmt.Sprintf("crashDumps/engine-%d.dmp", n)
		text = fmt.Sprintf("kennel-crash 1\nprogram: engine\nversion: 2.0.0.6074\nreason: panic: %s %d\n\npanic: %[1]s %[2]d\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:7 +0x1\n", Canary, n)
	}
	f := filepath.Join(root, "data/data/com.anki.victor/cache", name)
	aside := filepath.Join(root, "data", filepath.Base(name))
	return f, errors.Join(os.MkdirAll(filepath.Dir(f), 0o755), os.WriteFile(aside, []byte(text), 0o644), os.Rename(aside, f))
}
