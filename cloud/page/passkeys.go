package page

import (
	"net/http"
	"net/url"
	"strings"
)

// Passkeys says whether passkeys work at the address that the reader's browser is at. They are bound to a site: at another name of the
// same machine the browser has none.
type Passkeys struct {
	Here  bool
	There string // else: a site at which they do; "": nowhere
}

// PasskeysAt returns it for the sites at which browsers take passkeys.
func PasskeysAt(r *http.Request, sites []string) Passkeys {
	var v Passkeys
	_, port, _ := strings.Cut(r.Host, ":")
	for _, site := range sites {
		u, err := url.Parse(site)
		if err != nil {
			continue
		}
		if strings.EqualFold(u.Host, r.Host) {
			return Passkeys{Here: true}
		}
		if v.There == "" || u.Port() == port { // rather the name that leads to this very listener
			v.There = site
		}
	}
	return v
}
