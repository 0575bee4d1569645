package port

import "testing"

// slow is a port that takes so many bytes in each call.
type slow struct {
	Port
	takes int
	got   []byte
}

func (s *slow) Write(b []byte) (int, error) {
	n := min(s.takes, len(b))
	s.got = append(s.got, b[:n]...)
	return n, nil
}

// TestSender: frames arrive whole and in order, or not at all.
func TestSender(t *testing.T) {
	p, s := &slow{}, Sender{}
	for _, step := range []struct {
		takes int
		frame string
		full  bool
		got   string
	}{
		{2, "abc", false, "ab"}, {0, "def", true, "ab"}, {9, "ghi", false, "abcghi"}, {0, "jkl", true, "abcghi"}, {1, "mno", false, "abcghim"},
		{1, "pqr", true, "abcghimn"}, {1, "stu", false, "abcghimnos"},
	} {
		p.takes = step.takes
		if full, err := s.Send(p, []byte(step.frame)); full != step.full || err != nil || string(p.got) != step.got {
			t.Errorf("%s: full %t, %v, %s; want %t, %s", step.frame, full, err, p.got, step.full, step.got)
		}
	}
}
