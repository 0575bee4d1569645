package onebox

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"kennel/infra/freeaddr"
)

// TestAdmitOriginals: names open the robots' port to the network; port 443 is taken where it may be, and elsewhere the start continues with advice.
func TestAdmitOriginals(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free := freeaddr.For(t)
	for name, tc := range map[string]struct {
		names           []string
		listen          Listen
		given           string
		robots, uploads string
		advice, err     string
	}{
		"not asked for":     {nil, DefaultListen, "", DefaultListen.Robots, "", "", ""},
		"a name":            {[]string{"kennel.lan"}, Listen{Robots: "127.0.0.1:8444", Uploads: free}, "uploads", "0.0.0.0:8444", free, "", ""},
		"its own address":   {[]string{"kennel.lan"}, Listen{Robots: "127.0.0.1:8444", Uploads: free}, "robots uploads", "127.0.0.1:8444", free, "", ""},
		"one port for all":  {[]string{"192.168.1.5"}, Listen{Robots: "127.0.0.1:443"}, "robots", "127.0.0.1:443", "", "", ""},
		"a port in use":     {[]string{"kennel.lan"}, Listen{Robots: "127.0.0.1:8444", Uploads: taken.Addr().String()}, "robots uploads", "127.0.0.1:8444", "", "has it), so log uploads of original robots do not arrive: end that program", ""},
		"no such name":      {[]string{"kennel lan"}, DefaultListen, "", "", "", "", `-originals "kennel lan": want a host name in lower case, or an address`},
		"capital letters":   {[]string{"Kennel.lan"}, DefaultListen, "", "", "", "", "want a host name in lower case"},
		"a name and a port": {[]string{"kennel.lan:443"}, DefaultListen, "", "", "", "", "want a host name in lower case"},
	} {
		o := Onebox{Listen: tc.listen, Originals: tc.names}
		given := map[string]bool{}
		for part := range strings.FieldsSeq(tc.given) {
			given[part] = true
		}
		err := o.admitOriginals(given)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v, want %q", name, err, tc.err)
			}
			continue
		}
		if err != nil || o.Listen.Robots != tc.robots || o.Listen.Uploads != tc.uploads || !strings.Contains(o.advice, tc.advice) || (o.advice == "") != (tc.advice == "") {
			t.Errorf("%s: robots %q, uploads %q, advice %q, %v; want %q, %q, %q", name, o.Listen.Robots, o.Listen.Uploads, o.advice, err, tc.robots, tc.uploads, tc.advice)
		}
	}
}

// TestUploadAdvice: without the right to open port 443 the advice says what to type.
func TestUploadAdvice(t *testing.T) {
	got := uploadAdvice("0.0.0.0:443", "0.0.0.0:8444", &net.OpError{Op: "listen", Err: syscall.EACCES})
	for _, want := range []string{"Port 443 cannot be opened (this account may not open it)", "sudo setcap cap_net_bind_service=+ep ", "--dport 443 -j REDIRECT --to-ports 8444"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}
