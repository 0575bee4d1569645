package preflight

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Limits: ours, no source gives them.
const (
	certDays   = 14                  // a certificate with fewer days left is renewed too late
	mailAge    = 30 * 24 * time.Hour // a letter that the server took says that much about today
	backupAge  = 2 * 24 * time.Hour
	drillAge   = 31 * 24 * time.Hour
	longRetain = 400 // days
)

// Name judges the name by which people and robots call the installation: found are its addresses, err why there are none.
func Name(host string, found []netip.Addr, err error) Result {
	const do = "Set api.public_url to https:// and a name in the public DNS that leads to this machine."
	if ip, e := netip.ParseAddr(host); e == nil {
		return missing(do, "The installation is called by the address %s and has no name.", ip)
	}
	if host == "localhost" || !strings.Contains(host, ".") {
		return missing(do, "The installation is called %s, which other networks do not know.", host)
	}
	if err != nil || len(found) == 0 {
		return missing("Add an A or AAAA record for the name, or correct api.public_url.", "The name %s leads nowhere.", host)
	}
	public := slices.ContainsFunc(found, func(a netip.Addr) bool { return !a.IsLoopback() && !a.IsPrivate() && !a.IsLinkLocalUnicast() })
	if !public {
		return missing("Let the name lead to the public address.", "The name %s leads to %s, which only your own network reaches.", host, join(found))
	}
	return good("The name %s leads to %s.", host, join(found))
}

func join[T fmt.Stringer](in []T) string {
	var words []string
	for _, x := range in {
		words = append(words, x.String())
	}
	return strings.Join(words, ", ")
}

// Certificate judges the chain that the public side shows for host. roots are the authorities that browsers trust; nil: those of this system.
func Certificate(host string, chain []*x509.Certificate, roots *x509.CertPool, now time.Time) Result {
	const do = "Get a certificate of a public authority for the name and set api.cert_file and api.key_file."
	if len(chain) == 0 {
		return missing(do, "The public side shows no certificate.")
	}
	leaf := chain[0]
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	left := int(leaf.NotAfter.Sub(now).Hours() / 24)
	switch _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now}); {
	case now.After(leaf.NotAfter):
		return missing("Renew the certificate.", "The certificate ended on %s.", leaf.NotAfter.Format(time.DateOnly))
	case leaf.VerifyHostname(host) != nil:
		return missing(do, "The certificate is for %s, not for %s.", strings.Join(leaf.DNSNames, ", "), host)
	case err != nil && leaf.CheckSignatureFrom(leaf) == nil:
		return missing(do, "The certificate signed itself: browsers refuse it.")
	case err != nil:
		return missing(do, "The certificate is signed by %s, which browsers do not trust. Robots do.", leaf.Issuer.CommonName)
	case left < certDays:
		return missing("Renew the certificate, and find out why that was not done automatically.", "The certificate ends in %d days, on %s.", left, leaf.NotAfter.Format(time.DateOnly))
	}
	return good("The certificate for %s by %s is good for %d days.", host, leaf.Issuer.CommonName, left)
}

// MailSent judges how letters leave. server is the mail server's name; "": there is none.
func MailSent(server string, last Last, now time.Time) Result {
	switch {
	case server == "":
		return missing("Set mail.smtp and mail.from.", "No mail server is set: letters stay in a folder of this machine, so that people cannot confirm an address or reset a password.")
	case last.Bad.At.After(last.Good.At):
		return missing("Read the log of kenneld, and correct mail.smtp.", "The last letter, %s, was not taken by %s.", day(last.Bad.At), server)
	case last.Good.At.IsZero():
		return Unknown("Ask for a new password of an account of yours: that sends a letter.", "%s is set, but has taken no letter yet.", server)
	case now.Sub(last.Good.At) > mailAge:
		return Unknown("Ask for a new password of an account of yours: that sends a letter.", "%s took its last letter %s.", server, day(last.Good.At))
	}
	return good("%s took a letter %s.", server, day(last.Good.At))
}

func day(t time.Time) string { return "on " + t.UTC().Format("2006-01-02 15:04 UTC") }

// Factors judges how operators sign in: all may sign in, and the named ones do so with a password alone.
func Factors(all int, passwordOnly []string) Result {
	if len(passwordOnly) == 0 {
		return good("All %d operators have a second factor.", all)
	}
	shown := passwordOnly
	if len(shown) > 5 {
		shown = append(slices.Clone(shown[:5]), fmt.Sprintf("and %d more", len(passwordOnly)-5))
	}
	return missing("Each of them adds a passkey or an authenticator app under Your account; operators.require_second_factor makes that the rule.", "%d of %d operators sign in with a password alone: %s.", len(passwordOnly), all, strings.Join(shown, ", "))
}

// Backups judges when the last backup was made.
func Backups(last Last, now time.Time) Result {
	const do = "Run kenneld backup each night, with -recipient, and keep the file on another machine."
	switch {
	case last.Bad.At.After(last.Good.At):
		return missing(do, "The last backup, %s, failed: %s", day(last.Bad.At), last.Bad.Says)
	case last.Good.At.IsZero():
		return missing(do, "No backup by kenneld is recorded.")
	case now.Sub(last.Good.At) > backupAge:
		return missing(do, "The last backup was made %s.", day(last.Good.At))
	}
	return good("The last backup was made %s. %s", day(last.Good.At), last.Good.Says)
}

// Drills judges when a backup was last proven.
func Drills(last Last, now time.Time) Result {
	const do = "Run kenneld backup drill with the newest backup, once a month."
	switch {
	case last.Bad.At.After(last.Good.At):
		return missing("Make another backup, and run kenneld backup drill with it.", "The last restore drill, %s, failed: %s", day(last.Bad.At), last.Bad.Says)
	case last.Good.At.IsZero():
		return missing(do, "No restore drill is recorded: a backup that was never restored may not be one.")
	case now.Sub(last.Good.At) > drillAge:
		return missing(do, "The last restore drill was %s.", day(last.Good.At))
	}
	return good("A backup was restored and checked %s. %s", day(last.Good.At), last.Good.Says)
}

// Disks judges the volumes of this machine: trouble is the error of their watch about any that is low or full, and fine describes all of them. elsewhere
// lists the stores on machines that cannot be seen from here.
func Disks(trouble error, fine, elsewhere []string) Result {
	switch {
	case trouble != nil:
		return missing("Free some space, make the volume larger, or shorten events.keep_days.", "Not in order: %s.", trouble)
	case len(fine) == 0:
		return Unknown("Watch them where they are.", "No data is on a disk of this machine.")
	case len(elsewhere) > 0:
		return good("%s. Not seen from here: %s.", strings.Join(fine, "; "), strings.Join(elsewhere, ", "))
	}
	return good("%s.", strings.Join(fine, "; "))
}

// Part judges a part of this process by what its own check of readiness says: nil if all is well.
func Part(trouble error) Result {
	if trouble != nil {
		return missing("Mend it: the log of kenneld says more.", "Not in order: %s.", trouble)
	}
	return good("In order.")
}

// Clock judges whether the kernel's clock follows a time server.
func Clock(synced bool, maxError time.Duration) Result {
	if !synced {
		return missing("Turn on a time service, such as systemd-timesyncd or chrony.", "The clock of this machine follows no time server: certificates and tokens may be refused.")
	}
	return good("The clock follows a time server, to %v at most.", maxError.Round(time.Millisecond))
}

// Retention judges for how many days events and uploaded logs are kept.
func Retention(events, logs int) Result {
	if events > longRetain || logs > longRetain {
		return missing("Shorten events.keep_days and uploads.keep_days to what you need and have told the owners.", "Events are kept for %d days and uploaded logs for %d.", events, logs)
	}
	return good("Events are deleted after %d days, uploaded logs after %d.", events, logs)
}

// Listener is an open TCP port of this machine.
type Listener struct {
	Addr  netip.AddrPort
	What  string // which part of Kennel; "": none that is known
	Ours  bool   // this process opened it
	Meant bool   // for strangers
	Near  bool   // only private networks lead to it
}

// Ports judges what other machines can reach.
func Ports(all []Listener) Result {
	var bad, open, near, others []string
	for _, l := range all {
		if l.Addr.Addr().IsLoopback() {
			continue
		}
		text := net.JoinHostPort(l.Addr.Addr().String(), fmt.Sprint(l.Addr.Port()))
		switch {
		case l.What == "" && !l.Ours:
			others = append(others, text)
			continue
		case l.What != "":
			text = l.What + " on " + text
		}
		switch {
		case l.Meant:
			open = append(open, text)
		case l.Near:
			near = append(near, text)
		default:
			bad = append(bad, text)
		}
	}
	if len(bad) > 0 {
		return missing("Bind it to 127.0.0.1, or to a network that only operators' machines are in.", "Other machines can reach what is not for them: %s.", strings.Join(bad, "; "))
	}
	says := "No port is open to other machines."
	if len(open) > 0 {
		says = "Open to other machines: " + strings.Join(open, "; ") + "."
	}
	if len(near) > 0 {
		says += " Open to private networks: " + strings.Join(near, "; ") + "."
	}
	if len(others) > 0 {
		says += " Other programs of this machine listen on " + strings.Join(others, ", ") + "."
	}
	return good("%s", says)
}
