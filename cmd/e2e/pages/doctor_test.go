package pages

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/cmd/e2e/housetest"
	"kennel/infra/api/jdocspb"
	"kennel/infra/freeaddr"
)

// doctorCases are what the doctor once told wrongly, each with the robot's last digits (issue 31.2). That a device that installs with SWUpdate is asked
// for no loop, and is told of a wrong token, is in package lives.
var doctorCases = []struct {
	name string
	n    int
	play func(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed)
}{
	{"a token that another cloud signed with RS256", 0x31, func(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) { foreignToken(t, k, r, "RS256") }},
	{"a token that another cloud signed with RS512", 0x32, func(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) { foreignToken(t, k, r, "RS512") }},
	{"a clock that is years behind", 0x33, clockBehind},
	{"no root, with TLS 1.2", 0x34, func(t *testing.T, k *kennelOfComplaints, _ *housetest.Replayed) { noRoot(t, k, 0x34, tls.VersionTLS12) }},
	{"no root, with TLS 1.3", 0x35, func(t *testing.T, k *kennelOfComplaints, _ *housetest.Replayed) { noRoot(t, k, 0x35, tls.VersionTLS13) }},
	{"a robot that never got through", 0x36, neverThrough},
	{"a language that is not understood", 0x37, unheardLanguage},
	{"a simulated robot on a busy machine", 0x38, busyDesk},
}

func TestDoctorCases(t *testing.T) {
	// A server that is asked only when someone speaks: the robots here do not.
	h := housetest.New(t, "-robots", "1", "-originals", named, "-recognizers", "transcription=http://"+freeaddr.For(t))
	h.Start()
	k := &kennelOfComplaints{House: h, admin: h.Operator(t), maker: housetest.NewFactory(t), guide: h.OriginalsGuide(t)}
	k.admin.Do("PUT", "/v1/batches/lot-1", map[string]string{"bundle": k.maker.Bundle()}, nil)
	k.owner = h.Owner(t, "ada@example.com", "Ada")
	for _, c := range doctorCases {
		t.Run(c.name, func(t *testing.T) { c.play(t, k, k.robot(t, k.maker, c.n)) })
	}
}

// foreignToken: the doctor says where the token is from and tells no owner to wipe the robot; once it has signed in, the refusal is history.
func foreignToken(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed, alg string) {
	k.associate(t, r)
	parts := strings.Split(r.Token, ".")
	parts[0] = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"` + alg + `","typ":"JWT"}`))
	r.Token = strings.Join(parts, ".")
	if _, err := r.Read(t.Context(), housetest.ReadItem(housetest.SettingsDoc, 0)); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a token of another cloud: %v", err)
	}
	const refused = "Its access token is from another cloud (its signing algorithm is not used here): sign in again with an app"
	if shown := k.told(t, r.Thing, refused); strings.Contains(strings.ToLower(shown), "wipe") {
		t.Errorf("its owner is told to wipe it:\n%s", shown)
	}
	r.Stopped, r.Token = false, ""
	k.associate(t, r)
	if shown := k.told(t, r.Thing, "all is well now"); strings.Contains(shown, refused) {
		t.Errorf("solved, and told as if it were not:\n%s", shown)
	}
}

// shakes has a client at its own address call the robots' port, and checks that it hangs up.
func shakes(t *testing.T, k *kennelOfComplaints, n int, config *tls.Config) {
	t.Helper()
	config.ServerName = named
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(home(n))}}
	if conn, err := tls.DialWithDialer(from, "tcp", k.RobotsPort(), config); err == nil {
		_ = conn.Close() // that it is open is the fault
		t.Error("it accepts the certificate")
	}
}

// stranger waits until the doctor tells of a client at an address, and returns the lines about it.
func (k *kennelOfComplaints) stranger(t *testing.T, n int) (about string) {
	t.Helper()
	housetest.Await(t, time.Minute, "the doctor to tell of "+home(n), func() error {
		all := k.doctorOfStrangers()
		_, more, found := strings.Cut(all, home(n)+" ")
		if !found {
			return fmt.Errorf("not in:\n%s", all)
		}
		about, _, _ = strings.Cut(more, "A client at ")
		return nil
	})
	return about
}

// clockBehind: the clock comes before the root, which the robot has.
func clockBehind(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) {
	shakes(t, k, 0x33, &tls.Config{RootCAs: r.Roots, Time: func() time.Time { return time.Now().AddDate(-7, 0, 0) }})
	about := k.stranger(t, 0x33)
	clock, root := strings.Index(about, "time server"), strings.Index(about, "this cloud's root certificate")
	if clock < 0 || root >= 0 && root < clock {
		t.Errorf("the clock is named at %d and the root at %d of:\n%s", clock, root, about)
	}
}

// noRoot: a client hears of the missing root, whichever TLS it speaks.
func noRoot(t *testing.T, k *kennelOfComplaints, n int, version uint16) {
	shakes(t, k, n, &tls.Config{RootCAs: x509.NewCertPool(), MaxVersion: version})
	if about := k.stranger(t, n); !strings.Contains(about, "lacks the root") || !strings.Contains(about, "/etc/ssl/certs/local/root.crt") {
		t.Errorf("no word of the root in:\n%s", about)
	}
}

// neverThrough: of a robot that no message names, the doctor says whom the port refused, and how an original robot becomes known.
func neverThrough(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) {
	shakes(t, k, 0x36, &tls.Config{RootCAs: x509.NewCertPool()})
	k.stranger(t, 0x36)
	shown := k.told(t, r.Thing, "An original robot registers itself with its first call")
	if !strings.Contains(shown, home(0x36)) {
		t.Errorf("no word of the client that was refused in:\n%s", shown)
	}
}

// unheardLanguage: the robot is not well until its language is one that this cloud understands.
func unheardLanguage(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) {
	k.associate(t, r)
	if err := housetest.Wrote(1)(r.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{FmtVersion: 2, JsonDoc: `{"locale":"fr-FR"}`})); err != nil {
		t.Fatal(err)
	}
	if shown := k.told(t, r.Thing, `its language is "fr-FR"`); strings.Contains(shown, "all is well") {
		t.Errorf("and all is well:\n%s", shown)
	}
	if out, err := k.Ctl("jdocs", "set", r.Thing, housetest.SettingsDoc, "locale=de-DE"); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	if shown := k.told(t, r.Thing, "all is well"); strings.Contains(shown, "its language") {
		t.Errorf("in German:\n%s", shown)
	}
}

// busyDesk: whatever the load, a simulated robot's loop is no fault of the robot.
func busyDesk(t *testing.T, k *kennelOfComplaints, _ *housetest.Replayed) {
	id := k.AwaitPresent(1)[0]
	busy := make(chan struct{})
	defer close(busy)
	for range 4 {
		go func() {
			for {
				select {
				case <-busy:
					return
				default:
				}
			}
		}()
	}
	housetest.Await(t, time.Minute, "a verdict on the loop", func() error {
		var r struct {
			Checks []struct{ Check, Level, Text, Do string }
		}
		_ = k.CtlJSON(&r, "doctor", string(id)) // which fails for a robot that is not well
		for _, c := range r.Checks {
			if c.Check != "loop" || c.Level == "unknown" {
				continue
			}
			if !strings.Contains(c.Text, "simulated") || c.Level == "fail" || strings.Contains(c.Do, "real-time") {
				t.Errorf("%+v", c)
			}
			return nil
		}
		return os.ErrNotExist
	})
}
