//go:build !linux

package robotfs

import (
	"context"
	"errors"
	"os"
)

// Notified is for Linux; elsewhere the folder is looked at.
func Notified(context.Context, *os.Root, string, func()) error { return errors.ErrUnsupported }
