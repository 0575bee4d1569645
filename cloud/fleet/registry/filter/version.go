package filter

import "strings"

// VersionKey returns a text that sorts, byte by byte, as versions do: 2.9 before 2.10, 2.1 with 2.1.0, a pre-release (2.1-rc1) before its
// release, a release before its variants (6076 before 6076ep). "" is no version and comes first.
func VersionKey(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	s, _, _ = strings.Cut(s, "+") // build metadata does not order
	if len(s) > 1 && s[0] == 'v' && s[1] >= '0' && s[1] <= '9' {
		s = s[1:]
	}
	if s == "" {
		return ""
	}
	main, pre, isPre := strings.Cut(s, "-")
	parts := strings.Split(main, ".")
	for len(parts) > 1 && strings.Trim(parts[len(parts)-1], "0") == "" {
		parts = parts[:len(parts)-1]
	}
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteByte('.')
		}
		runs(&b, p)
	}
	if !isPre {
		b.WriteByte('#') // after '!', before '.' and anything a part may continue with
		return b.String()
	}
	b.WriteByte('!')
	for i, p := range strings.Split(pre, ".") {
		if i > 0 {
			b.WriteByte('.')
		}
		runs(&b, p)
	}
	return b.String()
}

// runs writes a part; each run of digits has its length before it, so that it sorts as a number.
func runs(b *strings.Builder, s string) {
	for i := 0; i < len(s); {
		if s[i] < '0' || s[i] > '9' {
			b.WriteByte(max(s[i], '$')) // below are our own marks
			i++
			continue
		}
		end := i
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		digits := strings.TrimLeft(s[i:end], "0")
		b.WriteByte('A' + byte(min(len(digits), 'Z'-'A')))
		b.WriteString(digits)
		i = end
	}
}
