package preflighthost

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"kennel/cloud/preflight"
)

// TestThisMachine: a port that this process opens is found with its address, its owner and its name.
func TestThisMachine(t *testing.T) {
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := netip.MustParseAddrPort(l.Addr().String())
	all, err := Listeners(map[uint16]preflight.Listener{at.Port(): {What: "metrics"}})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, x := range all {
		x.Near = false // a matter of this machine's network
		found = found || x == preflight.Listener{Addr: at, What: "metrics", Ours: true}
	}
	if !found {
		t.Errorf("%v is not in %+v", at, all)
	}
	if _, _, err := Clock(); err != nil {
		t.Error(err)
	}
}

func FuzzParseSockets(f *testing.F) {
	f.Add("  sl  local_address rem_address   st\n   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1\n")
	f.Add("   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4243 1\n")
	f.Fuzz(func(t *testing.T, s string) {
		for _, x := range parseSockets(strings.NewReader(s)) {
			if !x.addr.IsValid() || !strings.Contains(s, x.inode) {
				t.Errorf("%+v of %q", x, s)
			}
		}
	})
}

func TestParseSockets(t *testing.T) {
	got := parseSockets(strings.NewReader(`  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1
   1: 0100007F:1F91 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4244 1
   2: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4243 1
`))
	if len(got) != 2 || got[0] != (socket{netip.MustParseAddrPort("127.0.0.1:8080"), "4242"}) || got[1] != (socket{netip.MustParseAddrPort("[::1]:80"), "4243"}) {
		t.Errorf("%+v", got)
	}
}
