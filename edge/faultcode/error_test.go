package faultcode

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestError(t *testing.T) {
	err := fmt.Errorf("start: %w", Wrap(CloudESN, fmt.Errorf("read: %w", fs.ErrNotExist)))
	if Of(err) != CloudESN || !errors.Is(err, fs.ErrNotExist) || err.Error() != "start: fault 852: read: file does not exist" {
		t.Errorf("%v, fault %v", err, Of(err))
	}
	if Of(fs.ErrNotExist) != 0 || Wrap(CloudESN, nil) != nil {
		t.Error("a fault out of nothing")
	}
}
