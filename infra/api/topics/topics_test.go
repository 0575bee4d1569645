package topics

import (
	"strings"
	"testing"

	"kennel/infra/thing"
)

var (
	me    = thing.MustParse("vic:00e20100")
	other = thing.MustParse("vic:00e20101")
)

// TestOwnTopicsOnly is VEC-FLE-01: allowed and refused, for every shape a client might try.
func TestOwnTopicsOnly(t *testing.T) {
	for _, tc := range []struct {
		topic    string
		pub, sub bool
	}{
		{UpTopic(me, DAS), true, false},
		{UpTopic(me, Status), true, false},
		{ReqTopic(me, "jdocs", "read"), true, false},
		{DownTopic(me, Ack), false, true},
		{ResTopic(me, "1"), false, true},
		{"kennel/vic:00e20100/down/+", false, true},
		{"kennel/vic:00e20100/res/+", false, true},
		{UpTopic(other, DAS), false, false},
		{DownTopic(other, Ack), false, false},
		{ResTopic(other, "1"), false, false},
		{"kennel/+/down/ack", false, false},
		{"kennel/#", false, false},
		{"#", false, false},
		{"+/+/+/+", false, false},
		{"$share/kennel/kennel/+/up/+", false, false},
		{"$share/x/kennel/vic:00e20100/down/+", false, false},
		{"kennel/vic:00e20100/#", false, false},
		{"kennel/vic:00e20100/+/+", false, false},
		{"kennel/vic:00e20100/down/#", false, false},
		{"kennel/vic:00e20100/down/", false, false},
		{"kennel/vic:00e20100/req/jdocs", false, false},
		{"kennel/vic:00e201000/up/das", false, false},
		{"$SYS/broker/clients", false, false},
		{BrokerRefused, false, false},
		{"", false, false},
	} {
		if got := MayPublish(me, tc.topic); got != tc.pub {
			t.Errorf("MayPublish(%q) = %v, want %v", tc.topic, got, tc.pub)
		}
		if got := MaySubscribe(me, tc.topic); got != tc.sub {
			t.Errorf("MaySubscribe(%q) = %v, want %v", tc.topic, got, tc.sub)
		}
	}
	for _, f := range ThingFilters(me) {
		if !MaySubscribe(me, f) || MaySubscribe(other, f) {
			t.Errorf("filter %q: wrong owner rule", f)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("kennel/vic:00e20100/up/das")
	f.Add("kennel/vic:00e20100/req/jdocs/write")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Parse(s)
		if err != nil {
			return
		}
		if got.String() != s {
			t.Fatalf("Parse(%q).String() = %q", s, got)
		}
		if strings.Count(s, "/") > 7 {
			t.Fatalf("%q has more than 7 slashes", s)
		}
	})
}
