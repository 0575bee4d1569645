package das

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/infra/errs"
)

var asked = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestReadFilterRefuses: every refusal says what was expected.
func TestReadFilterRefuses(t *testing.T) {
	for _, tt := range []struct{ query, want string }{
		{"evnt=x", "want thing, robots, event"},
		{"thing=cat:1", "species"},
		{"thing=vic:1&thing=vic:2", "given 2 times, want it once"},
		{"name=battery", "such as battery.low"},
		{"level=grave", "want one of debug, info, warning"},
		{"fits=yes", "want no"},
		{"clock=mine", "want cloud or robot"},
		{"since=yesterday", "2026-05-06T12:00:00Z"},
		{"since=-3h", "such as 24h or 7d"},
		{"since=99999-01-01T00:00:00Z", "want a time"},
		{"since=1h&until=2h", "want a time after since"},
		{"value=battery<3500", "names of values need the whole name"},
		{"name=battery.low&value=load<3", "want one of battery (i1)"},
		{"name=battery.low&value=battery~3", "the value is a number: want ="},
		{"name=battery.low&value=battery=low", "64-bit integer"},
		{"value=i1=99999999999999999999", "64-bit"},
		{"value=s1<low", "= != or ~"},
		{"value=s1", "want a value, one of ="},
		{"value=s9=1", "want one of s1, s2"},
		{"value=s1;DROP TABLE das_event=1", "want one of s1, s2"},
		{"value=s1=a&value=s1=a&value=s1=a&value=s1=a&value=s1=a&value=s1=a&value=s1=a&value=s1=a&value=s1=a", "at most 8 conditions"},
		{"value=s1=" + strings.Repeat("x", 5000), "at most 4096"},
		{"event=" + strings.Repeat("x", 200), "at most 128 bytes"},
		{"source=%00", "without NUL"},
		{"source=%ff", "want UTF-8"},
	} {
		v := url.Values{}
		for _, p := range strings.Split(tt.query, "&") {
			key, s, _ := strings.Cut(p, "=")
			if u, err := url.QueryUnescape(s); err == nil {
				s = u
			}
			v.Add(key, s)
		}
		if _, err := ReadFilter(v, asked, nil); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.80s: %v; want %q", tt.query, err, tt.want)
		}
	}
}

// FuzzReadFilter: what is read can be written and read again, whatever is in an address.
func FuzzReadFilter(f *testing.F) {
	for _, s := range []string{"thing=vic:1&since=24h&until=1h", "name=battery.low&value=battery<3400&value=i1>=3", "robots=cohort:beta&version=2.*&level=warning&fits=no&clock=robot", "value=s1~'; --"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		v, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		one, err := ReadFilter(v, asked, nil)
		if err != nil {
			if errs.KindOf(err) != errs.Invalid {
				t.Fatalf("%v", err)
			}
			return
		}
		two, err := ReadFilter(one.Query(), asked, nil)
		if err != nil || !reflect.DeepEqual(one, two) {
			t.Fatalf("%+v\nread again %+v, %v", one, two, err)
		}
	})
}
