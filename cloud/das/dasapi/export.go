package dasapi

import (
	"net/http"
	"time"

	"kennel/cloud/das"
	"kennel/cloud/das/dasfile"
	"kennel/infra/auth"
	"kennel/infra/kit/kithttp"
)

// cutTrailer follows an export that does not have everything.
const cutTrailer = "Kennel-Cut"

// export streams what the filter chooses as one file. A file that breaks off, because the status is sent already, is how the peer learns that
// something is missing.
func export(w http.ResponseWriter, r *http.Request, svc *das.Service, o options) {
	ctx := r.Context()
	if err := auth.Check(auth.CallerFrom(ctx).Role, auth.Staff); err != nil {
		kithttp.WriteError(w, err)
		return
	}
	format := dasfile.NDJSON
	f, err := das.ReadFilter(r.URL.Query(), time.Now(), func(key, s string) (known bool, err error) {
		if known = key == "format"; known {
			format, err = dasfile.ParseFormat(s)
		}
		return known, err
	})
	if err == nil {
		err = o.audit(ctx, "events.export", string(f.Thing), string(format)+" "+nameless(f))
	}
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	head := w.Header()
	begin := func() (dasfile.Writer, error) {
		head.Set("Cache-Control", "no-store")
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Content-Type", format.Media())
		head.Set("Content-Disposition", `attachment; filename="`+format.Name()+`"`)
		head.Set("Trailer", cutTrailer)
		return dasfile.New(format, w)
	}
	var to dasfile.Writer // made with the first event, so that what cannot be asked is answered with its reason
	out, due := http.NewResponseController(w), time.Time{}
	more, err := svc.Stream(ctx, f, func(rec das.Record) (err error) {
		if now := time.Now(); now.After(due) { // a server without deadlines writes without
			due = now.Add(writeTimeout / 2)
			_ = out.SetWriteDeadline(now.Add(writeTimeout))
		}
		if to == nil {
			if to, err = begin(); err != nil {
				return err
			}
		}
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
