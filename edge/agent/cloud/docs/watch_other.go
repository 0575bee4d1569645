//go:build !linux

package docs

import (
	"context"
	"errors"
	"os"
)

// notified is for Linux; elsewhere the folder is looked at.
func notified(context.Context, *os.Root, string, func()) error { return errors.ErrUnsupported }
