package flash

import (
	"errors"
	"fmt"
	"strings"
)

// FileName is the usual name of a parameter file (AMIGO-CF-11).
const FileName = "AmigoBot.cf"

// Format returns the variables as the text of a parameter file, in the order of the manual.
func (v *Values) Format() string {
	var b strings.Builder
	for k := range Count {
		if !table[k].Constant {
			fmt.Fprintf(&b, "%s %s\n", k, v.Value(k))
		}
	}
	return b.String()
}

// Parse sets the variables that a parameter file names and keeps the others. Its errors name the lines, and leave v unchanged
// (AMIGO-OPEN-04).
func (v *Values) Parse(file string) error {
	next := *v
	var seen [Count]int
	var bad []error
	n := 0
	for line := range strings.Lines(file) {
		n++
		if i := strings.IndexAny(line, ";#"); i >= 0 {
			line = line[:i]
		}
		keyword, value, _ := strings.Cut(strings.Join(strings.Fields(line), " "), " ")
		if keyword == "" {
			continue
		}
		err := next.Set(keyword, value)
		if k, kerr := Lookup(keyword); kerr == nil {
			if err == nil && seen[k] > 0 {
				err = fmt.Errorf("%s is already set in line %d", k, seen[k])
			}
			seen[k] = n
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("line %d: %w", n, err))
		}
	}
	if err := errors.Join(bad...); err != nil {
		return err
	}
	*v = next
	return nil
}
