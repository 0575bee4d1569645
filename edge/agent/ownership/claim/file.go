package claim

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"kennel/edge/env/robotfs"
)

// CodeFile is where a robot without a display writes its code; its simulator prints it.
const CodeFile = "run/claim-code"

// FileDisplay shows a code in CodeFile.
type FileDisplay struct{ Root *os.Root }

// Show writes the code.
func (d FileDisplay) Show(code string, _ time.Duration) error {
	return robotfs.WriteFile(d.Root, CodeFile, []byte(code+"\n"), 0o600)
}

// Hide removes it.
func (d FileDisplay) Hide() error {
	if err := d.Root.Remove(CodeFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
