package brokerapi

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/thing"
)

func TestDenyIsCutIntoMessages(t *testing.T) {
	end := time.Unix(1800000000, 0).UTC()
	d := Deny{Reset: true, Block: map[thing.ID]string{}}
	for i := range 450 {
		d.Certs = append(d.Certs, DenyCert{Serial: strings.Repeat("f", 40), Key: fmt.Sprintf("%064x", i),
			Thing: thing.ID("vic:" + strings.Repeat("a", 40)), Until: end,
			Reason: strings.Repeat("\x01", 500)})
		d.Block[thing.ID(fmt.Sprintf("vic:%08x", i))] = strings.Repeat("\x01", 500)
		d.Allow = append(d.Allow, thing.ID(fmt.Sprintf("pleo:%08x", i)))
	}
	parts, err := d.Messages()
	if err != nil {
		t.Fatal(err)
	}
	certs, blocked, allowed, resets := 0, map[thing.ID]bool{}, 0, 0
	for i, b := range parts {
		if len(b) > topics.MaxPayload {
			t.Errorf("message %d has %d bytes", i, len(b))
		}
		p, err := ParseDeny(b)
		if err != nil {
			t.Fatal(err)
		}
		if p.Reset {
			if resets++; len(blocked) > 0 {
				t.Error("a later message resets what an earlier one blocked")
			}
		}
		certs += len(p.Certs)
		allowed += len(p.Allow)
		for id := range p.Block {
			blocked[id] = true
		}
	}
	if certs != 450 || len(blocked) != 450 || allowed != 450 || resets != 1 {
		t.Errorf("%d certificates, %d blocked, %d allowed, %d resets", certs, len(blocked), allowed, resets)
	}
	if parts, err := (Deny{Reset: true}).Messages(); err != nil || len(parts) != 1 {
		t.Errorf("nothing is blocked any more: %d messages, %v", len(parts), err)
	}
	if parts, err := (Deny{}).Messages(); err != nil || len(parts) != 0 {
		t.Errorf("nothing to say: %d messages, %v", len(parts), err)
	}
	if _, err := ParseDeny(mustFile(t, d)); err == nil {
		t.Error("a message of any size is taken")
	}
	if all, err := ParseDenyFile(mustFile(t, d)); err != nil || len(all.Certs) != 450 {
		t.Errorf("file: %d, %v", len(all.Certs), err)
	}
}

func mustFile(t *testing.T, d Deny) []byte {
	t.Helper()
	b, err := d.EncodeFile()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParseDenyRefuses(t *testing.T) {
	for _, in := range []string{
		"", "[]", "{}", `{"v":2}`, `{"v":1,"certs":[{}]}`, `{"v":1,"certs":[{"serial":"AB","until":"2030-01-01T00:00:00Z"}]}`, `{"v":1,"certs":[{"serial":"ab"}]}`,
		`{"v":1,"certs":[{"key":"ab","until":"2030-01-01T00:00:00Z"}]}`, `{"v":1,"block":{"kenneld":"x"}}`, `{"v":1,"allow":["#"]}`,
	} {
		if _, err := ParseDeny([]byte(in)); err == nil {
			t.Errorf("%s is accepted", in)
		}
	}
}

// FuzzDeny: what is read can be written and read again, and is then the same.
func FuzzDeny(f *testing.F) {
	f.Add([]byte(`{"v":1,"certs":[{"serial":"ab","until":"2030-01-01T00:00:00Z","reason":"stolen"}]}`))
	f.Add([]byte(`{"v":1,"reset":true,"block":{"vic:00e20100":"stolen"},"allow":["vic:1"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := ParseDeny(b)
		if err != nil {
			return
		}
		once, err := d.EncodeFile()
		if err != nil {
			return // a year that no JSON time can say
		}
		again, err := ParseDenyFile(once)
		if err != nil || len(again.Certs) != len(d.Certs) || !reflect.DeepEqual(again.Allow, d.Allow) && len(d.Allow) > 0 ||
			len(again.Block) != len(d.Block) {
			t.Fatalf("%+v -> %+v, %v", d, again, err)
		}
	})
}
