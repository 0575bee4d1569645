package docs

import (
	"context"
	"errors"
	"os"
)

// Files, NewOn and RootFiles let the model (model_test.go) put a disk under an Agent that it can cut off.
type Files = files

func NewOn(cfg Config, f Files) (*Agent, error) { return newAgent(cfg, f) }

func RootFiles(root *os.Root) Files { return rootFiles{root} }

// SetMerge replaces the merge of every document.
func (a *Agent) SetMerge(merge func(base, local, remote []byte) ([]byte, []string, error)) {
	for _, d := range a.docs {
		d.merge = merge
	}
}

// SyncWanted does what Run does once: it exchanges the documents that a hint named or that have changes to push.
func (a *Agent) SyncWanted(ctx context.Context) error {
	var err error
	for _, d := range a.docs {
		var wanted bool
		var changes []Change
		a.locked(func() {
			changes = a.refresh(d, false)
			wanted = d.want || d.dirty(d.local)
		})
		a.tell(changes)
		if wanted {
			err = errors.Join(err, a.sync(ctx, d))
		}
	}
	return err
}
