package diag

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"kennel/edge/agent/link/mqttlink"
	"kennel/edge/env"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/infra/api/files"
	"kennel/infra/thing"
)

// Sender sends logs by HTTP PUT with the headers that name robot and software (VEC-LOG-05).
type Sender struct {
	Root     *os.Root
	Hardware env.Hardware
	Thing    thing.ID
	OS       string        // the release it runs
	Profile  func() string // "": none
	Now      func() time.Time
	Upload   func(ctx context.Context, req *http.Request) (*http.Response, error)
}

// Send sends one file (outbox.Config.Send). Headers of which the robot knows nothing are left out.
func (s Sender) Send(ctx context.Context, f *os.File, file string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	name, reason := Name(file)
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, files.Log(name), io.NopCloser(io.LimitReader(f, info.Size()))) // f is the caller's, and may grow
	if err != nil {
		return err
	}
	req.ContentLength = info.Size()
	e, _ := platform.LoadEndpoints(s.Root, s.Hardware) // without them there is no connection
	for key, value := range map[string]string{
		files.AppKey: e.AppKey, files.ESN: s.Thing.Serial(), files.OSVersion: s.OS, files.OSRevision: s.text("etc/os-version-rev"),
		files.Version: s.text(platform.VersionFile), files.Revision: s.text("anki/etc/revision"),
		files.Timestamp: s.Now().UTC().Format(time.RFC3339), files.Username: s.Profile(), files.Reason: reason,
	} {
		if value != "" {
			req.Header.Set(key, value)
		}
	}
	resp, err := s.Upload(ctx, req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // read
	return mqttlink.Refusal(resp)
}

// text returns the first line of a file of the release; "": there is none, or nothing that a header may hold.
func (s Sender) text(name string) string {
	b, _ := robotfs.ReadFile(s.Root, name)
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	if len(line) > 100 || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return line
}
