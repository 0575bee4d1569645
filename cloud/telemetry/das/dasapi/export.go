package dasapi

import (
	"net/http"
	"strconv"
	"time"

	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/das/dasfile"
	"kennel/infra/kit/kithttp"
)

// Trailers of an export: how many events it has, and that it does not have everything.
const (
	eventsTrailer = "Kennel-Events"
	cutTrailer    = "Kennel-Cut"
)

// export streams what the filter chooses as one file. A file that breaks off, because the status is sent already, is how the peer learns that
// something is missing.
type export struct {
	svc    *das.Service
	filter das.Filter
	format dasfile.Format
}

// ServeHTTP implements http.Handler.
func (e export) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	begin := func() (dasfile.Writer, error) {
		head.Set("Cache-Control", "no-store")
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Content-Type", e.format.Media())
		head.Set("Content-Disposition", `attachment; filename="`+e.format.Name()+`"`)
		head.Set("Trailer", eventsTrailer+", "+cutTrailer)
		return dasfile.New(e.format, w)
	}
	var to dasfile.Writer // made with the first event, so that what cannot be asked is answered with its reason
	out, due, n := http.NewResponseController(w), time.Time{}, 0
	more, err := e.svc.Stream(r.Context(), e.filter, func(rec das.Record) (err error) {
		if now := time.Now(); now.After(due) { // a server without deadlines writes without
			due = now.Add(writeTimeout / 2)
			_ = out.SetWriteDeadline(now.Add(writeTimeout))
		}
		if to == nil {
			if to, err = begin(); err != nil {
				return err
			}
		}
		n++
		return to.Write(rec)
	})
	if err != nil && to == nil {
		kithttp.WriteError(w, err)
		return
	}
	if err == nil && to == nil {
		to, err = begin()
	}
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	head.Set(eventsTrailer, strconv.Itoa(n))
	if more {
		head.Set(cutTrailer, "true")
	}
}

// nameless is a filter for the audit log, without words that may be a person's name or address.
func nameless(f das.Filter) string {
	v := f.Query()
	for _, key := range []string{"robots", "value"} {
		if v.Has(key) {
			v.Set(key, "...")
		}
	}
	return v.Encode()
}
