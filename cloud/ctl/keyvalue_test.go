package ctl

import (
	"encoding/json"
	"strings"
	"testing"

	"kennel/infra/cli"
)

func TestParseKeyValue(t *testing.T) {
	for _, tt := range []struct{ arg, key, value string }{
		{"master_volume=3", "master_volume", "3"},
		{"custom_eye_color.hue=0.4", "custom_eye_color.hue", "0.4"},
		{"clock_24_hour=true", "clock_24_hour", "true"},
		{"time_zone=Europe/Berlin", "time_zone", `"Europe/Berlin"`},
		{`locale="en-US"`, "locale", `"en-US"`},
		{"a=", "a", `""`},
		{"a=b=c", "a", `"b=c"`},
		{`a={"b":[1, 2]}`, "a", `{"b":[1, 2]}`},
		{"a=007", "a", `"007"`},
		{"a= 3 ", "a", "3"},
	} {
		key, value, err := parseKeyValue(tt.arg)
		if err != nil || key != tt.key || string(value) != tt.value {
			t.Errorf("%q: got %q, %s, %v; want %q, %s", tt.arg, key, value, err, tt.key, tt.value)
		}
	}
	for _, arg := range []string{"", "a", "=3", "a..b=3", ".a=3", "a b=3", "a\n=3", "a=\xff"} {
		if key, value, err := parseKeyValue(arg); cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%q: got %q, %s, %v; want a usage error", arg, key, value, err)
		}
	}
	if _, err := parseSet([]string{"a=1", "b=2", "a=3"}); cli.ExitCode(err) != cli.ExitUsage {
		t.Errorf("a key given twice: %v, want a usage error", err)
	}
}

func FuzzKeyValue(f *testing.F) {
	for _, s := range []string{"a=3", "a.b=x", `a="q"`, "a={}", "=", "a=\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		key, value, err := parseKeyValue(arg)
		if err != nil {
			if cli.ExitCode(err) != cli.ExitUsage {
				t.Fatalf("%q: %v is no usage error", arg, err)
			}
			return
		}
		if !json.Valid(value) || key == "" || !strings.HasPrefix(arg, key+"=") {
			t.Fatalf("%q: key %q, value %s", arg, key, value)
		}
		// A value that was taken as text comes back unchanged.
		var text string
		if given := arg[len(key)+1:]; !json.Valid([]byte(given)) {
			if err := json.Unmarshal(value, &text); err != nil || text != given {
				t.Fatalf("%q: text %q, %v", arg, text, err)
			}
		}
	})
}

func FuzzReadEvents(f *testing.F) {
	f.Add("event: thing\ndata: {}\n\n: beat\n\ndata: a\ndata: b\nid: 7\n\n")
	f.Add("data:\r\n\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		total := 0
		err := readEvents(strings.NewReader(s), func(_ string, data []byte) error { total += len(data); return nil })
		if err == nil || total > len(s) {
			t.Fatalf("%d bytes of data from %d, %v", total, len(s), err)
		}
	})
}
