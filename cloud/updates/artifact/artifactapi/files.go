package artifactapi

import (
	"cmp"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"

	"kennel/cloud/updates/artifact"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/ota"
)

// MaxDownloads bounds the downloads that one process serves at once: each holds a connection to the object store. Robots that are turned away ask again
// within the hour (VEC-OTA-19); own default.
const MaxDownloads = 64

// Files serves archives to original robots, by the addresses that their updater makes (VEC-OTA-18). It asks for no proof: archives are signed and, as with the
// original, public.
type Files struct {
	svc   *artifact.Service
	log   *slog.Logger
	asked func(channel, version, target, answer string) // counts requests; an unknown one is of a release that the channel never offered
	sent  func(channel, version string, bytes int)      // counts bytes
	slots chan struct{}                                 // one for each download
}

// Targets are the kinds of robots that say so, by number (victortarget).
var Targets = []string{"dev", "oskr", "whiskey", "orange", "dvt3", "dvt2"}

// NewFiles returns the files of svc, at most downloads of them at once. asked and sent count.
func NewFiles(svc *artifact.Service, downloads int, asked func(channel, version, target, answer string), sent func(channel, version string, bytes int), log *slog.Logger) *Files {
	return &Files{svc, log, asked, sent, make(chan struct{}, downloads)}
}

var addressPattern = regexp.MustCompile(`^/vic/([a-z]+)/(full|diff)/([0-9a-z.]+)\.ota$`)

// fileOf reads an address.
func fileOf(path string) (f artifact.File, ok bool) {
	m := addressPattern.FindStringSubmatch(path)
	if m == nil {
		return f, false
	}
	f.Channel, f.Delta = m[1], m[2] == "diff"
	if !f.Delta && m[3] == "latest" {
		return f, true
	}
	v, err := ota.ParseVersion(m[3])
	if f.Delta {
		f.Base = v
	} else {
		f.Version = v
	}
	return f, err == nil
}

// targetOf says what kind of robot asks; "" if it does not say.
func targetOf(r *http.Request) string {
	n := r.URL.Query().Get("victortarget")
	if len(n) == 1 && n[0] >= '0' && int(n[0]-'0') < len(Targets) {
		return Targets[n[0]-'0']
	}
	return strings.Repeat("other", min(len(n), 1))
}

// Or serves requests for archives, and leaves all others to next: those for releases that a channel never offered, too.
func (f *Files) Or(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, ok := fileOf(r.URL.Path)
		if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		v, a, err := f.svc.Offered(r.Context(), thing.Vector, file, cmp.Or(string(file.Base), r.URL.Query().Get("victorversion")))
		count := func(answer string) {
			channel := file.Channel
			if v == "" {
				channel = "" // whatever strangers ask for
			}
			f.asked(channel, string(v), targetOf(r), answer)
		}
		switch {
		case err != nil:
			count("failed")
			f.log.ErrorContext(r.Context(), "lookup of archive failed", "path", r.URL.Path, logging.Err, err)
			later(w, "5", "the list of archives is not available; try again later")
		case v == "":
			count("unknown")
			next.ServeHTTP(w, r)
		case a.SHA256 == "":
			count("no_delta")
			http.Error(w, "no such archive of release "+string(v), http.StatusNotFound)
		case r.Method == http.MethodHead:
			count("described")
			f.serve(w, r, file, a)
		default:
			select {
			case f.slots <- struct{}{}:
				defer func() { <-f.slots }()
				count("sent")
				f.serve(w, r, file, a)
			default:
				count("busy")
				later(w, "60", "too many downloads at once; try again later")
			}
		}
	})
}

func later(w http.ResponseWriter, seconds, why string) {
	w.Header().Set("Retry-After", seconds)
	http.Error(w, why, http.StatusServiceUnavailable)
}

// serve sends the archive, or the ranges of it that are asked for.
func (f *Files) serve(w http.ResponseWriter, r *http.Request, file artifact.File, a artifact.Artifact) {
	f.sent(file.Channel, string(a.Version), send(w, r, f.svc, f.log, a))
}

// send sends the archive, or the ranges of it that are asked for, and returns how many bytes were read.
func send(w http.ResponseWriter, r *http.Request, svc *artifact.Service, log *slog.Logger, a artifact.Artifact) int {
	o := &object{size: a.Size, open: func(at int64) (io.ReadCloser, error) {
		body, _, err := svc.Objects.Get(r.Context(), a.Key(), at, 0)
		if err != nil && r.Context().Err() == nil {
			log.ErrorContext(r.Context(), "archive not read", "path", r.URL.Path, logging.Err, err)
		}
		return body, err
	}}
	defer o.close()
	h := w.Header()
	h.Set("ETag", a.ETag())
	h.Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", a.Created, o)
	return o.read
}

// Sender sends an archive to a device that may have it.
type Sender func(w http.ResponseWriter, r *http.Request, a artifact.Artifact)

// NewSender returns a Sender with at most downloads at once; others are told to ask again.
func NewSender(svc *artifact.Service, downloads int, log *slog.Logger) Sender {
	slots := make(chan struct{}, downloads) // one for each download
	return func(w http.ResponseWriter, r *http.Request, a artifact.Artifact) {
		if r.Method == http.MethodHead {
			send(w, r, svc, log, a)
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			send(w, r, svc, log, a)
		default:
			later(w, "60", "too many downloads at once; try again later")
		}
	}
}

// object is a file in the object store, opened where it is read.
type object struct {
	open     func(at int64) (io.ReadCloser, error)
	size, at int64
	body     io.ReadCloser
	read     int // bytes in all
}

// Seek implements io.Seeker.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.size
	}
	if offset != o.at {
		o.close()
	}
	o.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (o *object) Read(p []byte) (n int, err error) {
	if o.at >= o.size {
		return 0, io.EOF
	}
	if o.body == nil {
		if o.body, err = o.open(o.at); err != nil {
			return 0, err
		}
	}
	n, err = o.body.Read(p)
	o.at, o.read = o.at+int64(n), o.read+n
	return n, err
}

func (o *object) close() {
	if o.body != nil {
		_ = o.body.Close() // only read
		o.body = nil
	}
}
