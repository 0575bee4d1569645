package brokerapi

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestRoundTrip(t *testing.T) {
	r := Refusal{
		At: time.Unix(1700000000, 0).UTC(), Addr: "192.0.2.1:5", ClientID: "vic:1", CN: "vic:2", Issuer: "CA", Serial: "ab12",
		NotAfter: time.Unix(1700001000, 0).UTC(), Code: CodeClientID, Reason: "no", Muted: 3,
	}
	b, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	r.V = 1
	if got, err := ParseRefusal(b); err != nil || got != r {
		t.Errorf("got %+v, %v, want %+v", got, err, r)
	}
	r.Reason = strings.Repeat("\x00", 1<<20)
	if b, err := r.Encode(); err != nil || len(b) > 4096 {
		t.Errorf("a long reason makes %d bytes, %v", len(b), err)
	}
	k := Kick{V: 1, ClientID: "vic:1", Reason: "revoked"}
	b, _ = k.Encode()
	if got, err := ParseKick(b); err != nil || got != k {
		t.Errorf("got %+v, %v", got, err)
	}
	s := Stats{V: 1, Connected: 7, Away: map[string]int64{"share": 3}, News: "many"}
	b, _ = s.Encode()
	if got, err := ParseStats(b); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, in := range []string{"", "[]", "{}", `{"v":2,"code":"x"}`, `{"v":1,"client_id":""}`} {
		if _, err := ParseRefusal([]byte(in)); err == nil {
			t.Errorf("refusal %q accepted", in)
		}
		if _, err := ParseKick([]byte(in)); err == nil {
			t.Errorf("kick %q accepted", in)
		}
		if _, err := ParseStats([]byte(in)); err == nil && in != `{"v":1,"client_id":""}` {
			t.Errorf("stats %q accepted", in)
		}
	}
}

// FuzzParse: what is read can be written and read again, and is then the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"v":1,"at":"2026-11-21T00:00:00Z","addr":"a","code":"expired","reason":"r"}`))
	f.Add([]byte(`{"v":1,"client_id":"vic:1","reason":"r"}`))
	f.Add([]byte(`{"v":1,"connected":3}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := ParseRefusal(b); err == nil {
			once, err := r.Encode()
			if err != nil {
				return // a year that no JSON time can say
			}
			again, err := ParseRefusal(once)
			if err != nil || !again.At.Equal(r.At) || again.Code != r.Code {
				t.Fatalf("%+v -> %+v, %v", r, again, err)
			}
		}
		if k, err := ParseKick(b); err == nil {
			once, _ := k.Encode()
			if again, err := ParseKick(once); err != nil || again != k {
				t.Fatalf("%+v -> %+v, %v", k, again, err)
			}
		}
		if s, err := ParseStats(b); err == nil {
			once, _ := s.Encode()
			if again, err := ParseStats(once); err != nil || !reflect.DeepEqual(again, s) {
				t.Fatalf("%+v -> %+v, %v", s, again, err)
			}
		}
	})
}
