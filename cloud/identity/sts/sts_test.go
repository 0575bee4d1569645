package sts_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/sts"
	"kennel/infra/errs"
	"kennel/infra/secretbox"
	"kennel/infra/thing"
)

type good struct{}

func (good) Check(context.Context, sts.Grant, bool) error { return nil }

const user = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"

func TestGrantsAreSealed(t *testing.T) {
	key, now := secretbox.New(), time.Date(2026, 11, 21, 14, 0, 0, 5, time.UTC)
	open := func(k secretbox.Key) *sts.Grants {
		g, err := sts.New(sts.Config{Seal: k, Standing: good{}, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	c, err := open(key).Mint(t.Context(), "vic:00e20100", user)
	if err != nil {
		t.Fatal(err)
	}
	g, secret, err := open(key).Open(c.AccessKeyID, c.SessionToken.Reveal()) // another process with the same key file
	want := sts.Grant{Thing: "vic:00e20100", User: user, Prefix: "logs", Issued: now.Truncate(time.Second), Expires: now.Truncate(time.Second).Add(12 * time.Hour)}
	if err != nil || g != want || secret != c.SecretAccessKey || c.Expires != want.Expires {
		t.Errorf("opened %+v, %v; want %+v", g, err, want)
	}
	if _, _, err := open(secretbox.New()).Open(c.AccessKeyID, c.SessionToken.Reveal()); errs.CodeOf(err) != sts.CodeToken {
		t.Errorf("another key file: %v", err)
	}
	for _, bad := range []struct {
		id   thing.ID
		user string
	}{{"vic:00e20100", ".."}, {"vic:00e20100", ""}, {"vic:00e20100", "a/b"}, {"vic:../x", user}, {"", user}} {
		if _, err := open(key).Mint(t.Context(), bad.id, bad.user); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%+v: %v, want invalid", bad, err)
		}
	}
	for _, bad := range []sts.Config{{Standing: good{}, Prefix: "a/../b"}, {Standing: good{}, Prefix: "/a"}, {Standing: good{}, Life: time.Minute}, {}} {
		if _, err := sts.New(bad); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%+v: %v, want invalid", bad, err)
		}
	}
}

// The maker's own folder is stored in ours.
func TestStored(t *testing.T) {
	for prefix, want := range map[string]string{"logs": "logs/", "logs/a": "logs/a/", "victor": "logs/victor/", "logsy": "logs/logsy/"} {
		g := sts.Grant{Thing: "vic:00e20100", User: user, Prefix: prefix}
		if got := g.Stored(g.Folder() + "x"); got != want+user+"/dmljOjAwZTIwMTAw/x" {
			t.Errorf("%s: %s, want %s", prefix, got, want)
		}
	}
}

func FuzzMay(f *testing.F) {
	g := sts.Grant{Thing: "vic:00e20100", User: user, Prefix: "logs"}
	f.Add(g.Folder() + "2026-11-21-14-00-00-a.gz")
	f.Add(g.Folder() + "../x")
	f.Fuzz(func(t *testing.T, key string) {
		if !g.May(key) {
			return
		}
		if !strings.HasPrefix(key, "logs/"+user+"/dmljOjAwZTIwMTAw/") || strings.Contains(key+"/", "/../") || strings.Contains(key, "//") || strings.ContainsAny(key, "\\\x00\n") {
			t.Errorf("%q is allowed", key)
		}
	})
}
