package natsserver

import (
	"strings"
	"testing"
)

// subjectOf is the servers' own mapping, the other way.
func subjectOf(topic string) string { return strings.NewReplacer("/", ".", ".", "//").Replace(topic) }

func TestTopicOf(t *testing.T) {
	for subject, want := range map[string]string{
		"kennel.vic:1.up.das": "kennel/vic:1/up/das", "kennel.vic:1.req.a//b.c": "kennel/vic:1/req/a.b/c", "": "", "a..b": "a//b",
	} {
		if got, err := topicOf(subject); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", subject, got, err, want)
		}
	}
	for _, bad := range []string{"a/b", "a/", "a///b"} {
		if got, err := topicOf(bad); err == nil {
			t.Errorf("%q: %q", bad, got)
		}
	}
}

// FuzzTopicOf: each subject that is read is the servers' subject of its topic.
func FuzzTopicOf(f *testing.F) {
	f.Add("kennel.vic:1.up.das")
	f.Add("a//b.c/")
	f.Fuzz(func(t *testing.T, s string) {
		if topic, err := topicOf(s); err == nil && subjectOf(topic) != s {
			t.Fatalf("%q -> %q -> %q", s, topic, subjectOf(topic))
		}
	})
}
