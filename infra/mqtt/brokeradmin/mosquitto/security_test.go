package mosquitto

import (
	"encoding/json"
	"strings"
	"testing"

	"kennel/infra/errs"
)

func TestCheckSecurity(t *testing.T) {
	good, err := example.Security("vic:00e20100")
	if err != nil {
		t.Fatal(err)
	}
	two := example
	two.Admins = []string{"kenneld", "kenneld-eu"}
	for name, x := range map[string]struct {
		b         Broker
		old, with string
		want      string
	}{
		"ours":              {b: example},
		"half":              {b: example, old: `"roles"`, with: "", want: "security file: "},
		"another's":         {b: example, old: adminRole + `",`, with: `admin",`, want: "no role " + adminRole},
		"older":             {b: example, old: "$share/kennel/kennel/+/up/+", with: "$share/old", want: "may not subscribePattern $share/kennel/kennel/+/up/+"},
		"denied":            {b: example, old: `"allow": true`, with: `"allow": false`, want: "may not publishClientSend #"},
		"disabled":          {b: example, old: `"username": "kenneld",`, with: `"username": "kenneld", "disabled": true,`, want: "service kenneld is missing"},
		"a service too few": {b: two, want: "service kenneld-eu is missing"},
		"open":              {b: example, old: `"subscribe": false`, with: `"subscribe": true`, want: "subscribe is allowed"},
	} {
		text := string(good)
		if x.old != "" {
			if text = strings.Replace(text, x.old, x.with, 1); text == string(good) {
				t.Fatalf("%s: no %q in the file", name, x.old)
			}
		}
		err := x.b.CheckSecurity([]byte(text))
		if x.want == "" && err != nil || x.want != "" && (errs.KindOf(err) != errs.Corrupt || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
	if err := example.CheckSecurity(nil); errs.KindOf(err) != errs.Corrupt {
		t.Errorf("empty: %v", err)
	}
}

// FuzzCheckSecurity: what passes still passes when the plugin has read it and written it again.
func FuzzCheckSecurity(f *testing.F) {
	good, err := example.Security("vic:00e20100")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"roles":[{"rolename":"kennel-service","acls":[]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if example.CheckSecurity(b) != nil {
			return
		}
		var s securityFile
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := example.CheckSecurity(again); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}
