package voice

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"kennel/edge/env/robotfs"
	"kennel/edge/mic"
	"kennel/infra/logging"
	"kennel/infra/wav"
)

// CaptureDir is where a developer's robot keeps the sound of its newest sessions, below its root. A wipe removes it.
const CaptureDir = robotfs.Cache + "/cloud_intents"

// Bounds of it; own defaults.
const (
	maxCaptures = 10
	maxCaptured = int(mic.Rate * 2 * (Deadline + 1e9) / 1e9) // bytes of samples: a session and what was said before its call
)

// capture is the sound of one session, as the cloud gets it.
type capture struct {
	session string
	pcm     []byte
}

func (c *capture) add(piece []byte) {
	if c != nil && len(c.pcm)+len(piece) <= maxCaptured {
		c.pcm = append(c.pcm, piece...)
	}
}

// save writes c as a file and returns its name below root. The oldest files above the bound are removed.
func (c *capture) save(root *os.Root) (string, error) {
	s := wav.Sound{Rate: mic.Rate, Channels: 1, Samples: make([]int16, len(c.pcm)/2)}
	for i := range s.Samples {
		s.Samples[i] = int16(binary.LittleEndian.Uint16(c.pcm[2*i:]))
	}
	if err := root.MkdirAll(CaptureDir, 0o700); err != nil {
		return "", err
	}
	name := CaptureDir + "/" + c.session + ".wav"
	if err := robotfs.WriteFile(root, name, wav.Append(nil, &s), 0o600); err != nil {
		return "", err
	}
	all, err := fs.ReadDir(root.FS(), CaptureDir) // by name, which begins with the time
	if err != nil {
		return name, err
	}
	for len(all) > maxCaptures {
		err = errors.Join(err, root.Remove(CaptureDir+"/"+all[0].Name()))
		all = all[1:]
	}
	return name, err
}

// keep writes the sound of the session that ended, and tells where it is (VEC-NLP-10).
func (l *loop) keep(c *capture) {
	if c == nil || len(c.pcm) == 0 {
		return
	}
	l.wg.Go(func() {
		name, err := c.save(l.cfg.Root)
		if err != nil {
			l.cfg.Log.Warn("sound of a session not kept whole", logging.Err, err)
		}
		if name != "" {
			l.tell(Event{CloudIntent: &CloudIntent{Type: Recorded, File: "/" + name}})
		}
	})
}

// recorder returns a place for the sound of a session; nil: it is not kept. The sound of former sessions goes when the owner no longer allows it.
func (v *Voice) recorder(r Request) *capture {
	if !r.SkipDAS && v.cfg.Capture {
		return &capture{session: r.Session}
	}
	if err := v.cfg.Root.RemoveAll(CaptureDir); err != nil {
		v.cfg.Log.Warn("sound of sessions not removed", logging.Err, fmt.Errorf("%s: %w", CaptureDir, err))
	}
	return nil
}
