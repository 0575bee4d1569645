package access

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"kennel/infra/auth"
	"kennel/infra/op"
)

// operationsTSV holds the rules of the operations that slices declare (infra/op), so that the whole matrix can be read here, and a change of rights is
// seen as one. make generate writes it.
//
//go:embed operations.tsv
var operationsTSV string

// RuleOf returns the rule of a declared operation.
func RuleOf(o op.Op) Rule {
	roles := slices.Clone(o.Roles)
	if o.Own && !slices.Contains(roles, auth.Owner) {
		roles = append([]auth.Role{auth.Owner}, roles...)
	}
	return Rule{Name: o.Route, Roles: roles, Own: o.Own, By: o.By, Quiet: o.Quiet, Plain: o.Plain, Page: o.Page}
}

// Lines returns what operations.tsv holds for a list of operations: route, roles, marks, and what decides where no role does.
func Lines(all op.List) string {
	lines := make([]string, 0, len(all))
	for _, o := range all {
		lines = append(lines, RuleOf(o).line())
	}
	slices.Sort(lines)
	return "route\troles\tmarks\tby\n" + strings.Join(lines, "\n") + "\n"
}

func (r Rule) line() string {
	var roles, marks []string
	for _, role := range append([]auth.Role{auth.Thing}, auth.People...) { // from least to most
		if slices.Contains(r.Roles, role) {
			roles = append(roles, string(role))
		}
	}
	for mark, set := range map[string]bool{"own": r.Own, "quiet": r.Quiet, "plain": r.Plain, "page": r.Page} {
		if set {
			marks = append(marks, mark)
		}
	}
	slices.Sort(marks)
	return strings.Join([]string{r.Name, strings.Join(roles, ","), strings.Join(marks, ","), r.By}, "\t")
}

// door is the transport that an operation's name is of.
type door int

const (
	overHTTP door = iota
	overMQTT
	overGRPC
)

func doorOf(name string) door {
	switch {
	case strings.HasPrefix(name, "/"):
		return overGRPC
	case strings.Contains(name, " "):
		return overHTTP
	}
	return overMQTT
}

// declared returns the rules of operations.tsv for one door.
func declared(d door) []Rule {
	return slices.DeleteFunc(read(operationsTSV), func(r Rule) bool { return doorOf(r.Name) != d })
}

func read(text string) (out []Rule) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, line := range lines[1:] {
		parts := strings.Split(line, "\t")
		if len(parts) != 4 {
			panic("access: operations.tsv: " + line)
		}
		r := Rule{Name: parts[0], By: parts[3]}
		for role := range strings.SplitSeq(parts[1], ",") {
			if role != "" {
				r.Roles = append(r.Roles, auth.Role(role))
			}
		}
		for mark := range strings.SplitSeq(parts[2], ",") {
			switch mark {
			case "own":
				r.Own = true
			case "quiet":
				r.Quiet = true
			case "plain":
				r.Plain = true
			case "page":
				r.Page = true
			}
		}
		out = append(out, r)
	}
	return out
}

// CheckDeclared returns an error if the tables have another rule for an operation than its slice declares, or none. t has the rules of HTTP.
func (t Table) CheckDeclared(all op.List) error {
	for _, o := range all {
		table := map[door]Table{overHTTP: t, overMQTT: Requests, overGRPC: Calls}[doorOf(o.Route)]
		if got, ok := table[o.Route]; !ok || got.line() != RuleOf(o).line() {
			return fmt.Errorf("access: %s is declared as %q, and the table has %q; run make generate", o.Route, RuleOf(o).line(), got.line())
		}
	}
	return nil
}
