package docs

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/jdocs"
)

// watch calls changed whenever a file in dir may have changed, until ctx ends. It uses inotify; if that fails, because there are no watches
// left or the folder was replaced, it looks at the folder twice a second.
func watch(ctx context.Context, root *os.Root, dir string, log *slog.Logger, changed func(force bool)) {
	for ctx.Err() == nil {
		err := robotfs.Notified(ctx, root, dir, func() { changed(true) })
		if ctx.Err() != nil {
			return
		}
		log.DebugContext(ctx, "folder watch not available; polling", "dir", dir, "err", err)
		tick := time.NewTicker(pollEvery)
		for i := 0; i < 20 && ctx.Err() == nil; i++ {
			changed(false)
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		tick.Stop()
	}
}

// reload looks at all local copies. force reads them even if they look the same.
func (a *Agent) reload(force bool) {
	var changes []Change
	spoiled := false
	a.locked(func() {
		for _, d := range a.docs {
			changes = append(changes, a.refresh(d, force)...)
			spoiled = spoiled || !d.spoiled.IsZero()
		}
	})
	a.tell(changes)
	if spoiled || len(changes) > 0 {
		a.wake.Set()
	}
}

// refresh reads what another program wrote into the local copy (SDK programs and tests edit it). It never takes over the version, which
// only the exchange with the cloud changes. The caller holds mu and reports the changes after releasing it.
func (a *Agent) refresh(d *document, force bool) []Change {
	if !force && d.spoiled.IsZero() {
		if now, err := a.files.Stat(d.localPath); err == nil && same(now, d.seen) {
			return nil
		}
	}
	var file localDoc
	b, info, err := a.files.Read(d.localPath)
	if err == nil {
		file, err = parseLocal(b)
	}
	if err != nil {
		// A program may be in the middle of writing or replacing it.
		switch now := time.Now(); {
		case d.spoiled.IsZero():
			d.spoiled = now
		case now.Sub(d.spoiled) >= spoiledFor:
			if !errors.Is(err, fs.ErrNotExist) {
				d.refused = err.Error()
			}
			a.restore(d, err.Error())
		}
		return nil
	}
	d.spoiled = time.Time{}
	if d.seen = info; time.Since(info.ModTime()) < fileTick {
		d.seen = nil // one more edit may leave the same time
	}
	mine := d.local
	if file.Version == mine.Version && jdocs.Equal([]byte(file.JSON), []byte(mine.JSON)) {
		return nil
	}
	text := file.JSON
	if file.Version != mine.Version {
		// Written back over a newer copy: merge its changes with those made in between.
		if ground, ok := d.ledger.base(file.Version); ok {
			if merged, _, err := d.merge([]byte(ground), []byte(file.JSON), []byte(mine.JSON)); err == nil {
				text = string(merged)
			}
		}
	}
	l := mine
	l.JSON = text
	d.refused = ""
	d.local = l // before the write: if that fails, memory still matches the file
	d.touched()
	if file.Version != mine.Version || text != file.JSON {
		if err := a.writeLocal(d, l); err != nil {
			a.cfg.Log.Warn("unknown version in the local copy of a document not replaced", "doc", d.name, "err", err)
		}
	}
	return changeOf(d.name, mine.JSON, text, FromFile)
}

// restore writes the local copy again from memory.
func (a *Agent) restore(d *document, why string) {
	a.cfg.Log.Warn("local copy of a document missing; recreating it", "doc", d.name, "why", why)
	if err := a.writeLocal(d, d.local); err != nil {
		a.cfg.Log.Warn("local copy of a document not written", "doc", d.name, "err", err)
		return
	}
	d.spoiled = time.Time{}
}

func same(a, b fs.FileInfo) bool {
	return b != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
