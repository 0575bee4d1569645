package sts_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"kennel/cloud/identity/sts"
)

// TestNames: what a name becomes in the bucket, and back.
func TestNames(t *testing.T) {
	long := strings.Repeat("a", 201)
	for name, want := range map[string]string{
		"2026-11-21-14-00-00-log.gz": "2026-11-21-14-00-00-log.gz", // the name that genuine robots send stays as it is
		"a.gz/b":                     "a.gz%2Fb",
		"a.gz%2Fb":                   "a.gz%252Fb",
		".sgwtmp/x":                  "%2Esgwtmp%2Fx",
		"x/.sgwtmp/y":                "x%2F.sgwtmp%2Fy",
		"~x":                         "%7Ex",
		"a~.b":                       "a~.b",
		"ü +=&?#.gz":                 "ü +=&?#.gz",
		strings.Repeat("a", 200):     strings.Repeat("a", 200),
		long:                         "",
	} {
		got := sts.EncodeName(name)
		if len(name) > 200 {
			want = got // its form is checked below
			if len(got) != 65 || got[0] != '~' {
				t.Errorf("%d bytes: %s", len(name), got)
			}
		}
		if got != want {
			t.Errorf("%q is stored as %q, want %q", name, got, want)
		}
		back, ok := sts.DecodeName(got)
		if ok != (len(name) <= 200) || ok && back != name {
			t.Errorf("%q comes back as %q, %v", name, back, ok)
		}
	}
	// Objects from before names were encoded.
	for _, old := range []string{"a b/c.gz", ".sgwtmp", "100%.gz", "a%20b", "~short"} {
		if got, ok := sts.DecodeName(old); got != old || !ok {
			t.Errorf("old name %q is read as %q, %v", old, got, ok)
		}
	}
}

// TestKeys: each kind of key has a defined answer.
func TestKeys(t *testing.T) {
	g := sts.Grant{Thing: "vic:00e20100", User: user, Prefix: "logs"}
	f := g.Folder()
	for key, want := range map[string]bool{
		f + "a.gz": true, f + "a.gz/b": true, f + ".sgwtmp/x": true, f + "x/.sgwtmp/y": true, f + "%2e%2e": true, f + "ü +=&?#.gz": true,
		f + strings.Repeat("a", sts.MaxKey-len(f)): true, f + strings.Repeat("a", sts.MaxKey-len(f)+1): false,
		f: false, f + "a\x00": false, f + "..": false, f + "../x": false, f + ".": false, f + "a//b": false, f + "/a": false, "/" + f + "a": false, f + "a/": false,
		f + "a\xff": false, f + "a\nb": false, f + `a\b`: false, "logs/x": false, "": false,
	} {
		if got := g.May(key); got != want {
			t.Errorf("%.100q: %v, want %v", key, got, want)
		}
	}
}

func FuzzName(f *testing.F) {
	for _, s := range []string{"a.gz", "a.gz/b", ".sgwtmp", "%2F", "~", "..", "\x00", strings.Repeat("%/", 300)} {
		f.Add(s, "a")
	}
	f.Fuzz(func(t *testing.T, name, other string) {
		stored := sts.EncodeName(name)
		if stored == "" != (name == "") || len(stored) > 200 || strings.ContainsAny(stored, "/\\\x00\n") || strings.HasPrefix(stored, ".") {
			t.Fatalf("%q is stored as %q", name, stored)
		}
		if utf8.ValidString(name) && !utf8.ValidString(stored) {
			t.Fatalf("%q is stored as %q, which is not UTF-8", name, stored)
		}
		if back, ok := sts.DecodeName(stored); ok && back != name || !ok && len(name) <= 66 {
			t.Fatalf("%q comes back as %q, %v", name, back, ok)
		}
		if name != other && sts.EncodeName(other) == stored {
			t.Fatalf("%q and %q are both stored as %q", name, other, stored)
		}
		if old, ok := sts.DecodeName(other); ok && old != other && sts.EncodeName(old) != other {
			t.Fatalf("%q is read as %q", other, old)
		}
	})
}
