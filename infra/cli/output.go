package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"

	"kennel/infra/errs"
)

const outputFlag = "output"

// Usage returns an error that ends the program with ExitUsage.
func Usage(format string, args ...any) error { return errs.New(errs.Invalid, format, args...) }

// AddOutput gives root and all its commands the flag -o, -output: table or json.
func AddOutput(root *cobra.Command) {
	root.PersistentFlags().VarP(&format{"table"}, outputFlag, "o", "print results as `table or json`")
	_ = root.RegisterFlagCompletionFunc(outputFlag, cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

// format is the value of -o.
type format struct{ v string }

func (f *format) String() string { return f.v }
func (f *format) Type() string   { return "format" }
func (f *format) Set(s string) error {
	if s != "table" && s != "json" {
		return fmt.Errorf("want table or json")
	}
	f.v = s
	return nil
}

// JSON reports whether the command was asked for JSON.
func JSON(cmd *cobra.Command) bool {
	f := cmd.Flag(outputFlag)
	return f != nil && f.Value.String() == "json"
}

// wantsJSON answers for a command line that may not have been parsed to its end.
func wantsJSON(root *cobra.Command, args []string) bool {
	f := root.PersistentFlags().Lookup(outputFlag)
	if f == nil {
		return false
	}
	if f.Changed {
		return f.Value.String() == "json"
	}
	for i, a := range args {
		a = strings.TrimLeft(a, "-")
		if a == "o=json" || a == "output=json" || a == "ojson" ||
			(i > 0 && a == "json" && (args[i-1] == "-o" || strings.TrimLeft(args[i-1], "-") == outputFlag)) {
			return true
		}
	}
	return false
}

// Print writes v as indented JSON with -o json, else what table draws. Both come from the same value, so that neither knows more.
func Print(cmd *cobra.Command, v any, table func(*Table)) error {
	out := cmd.OutOrStdout()
	if JSON(cmd) {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	t := NewTable(out)
	table(t)
	return t.Flush()
}

// PrintLine writes one value of a stream: one line of JSON, or what line returns.
func PrintLine(cmd *cobra.Command, v any, line func() string) error {
	out := cmd.OutOrStdout()
	if JSON(cmd) {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	_, err := fmt.Fprintln(out, Clean(line()))
	return err
}

// Table draws aligned columns for people.
type Table struct {
	w   *tabwriter.Writer
	err error
}

// NewTable returns a table that writes to w at Flush.
func NewTable(w io.Writer) *Table { return &Table{w: tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)} }

// Row adds one line; each cell prints as %v, cleaned of control characters, and an empty one as "-".
func (t *Table) Row(cells ...any) {
	for i, c := range cells {
		s := Clean(fmt.Sprint(c))
		if s == "" {
			s = "-"
		}
		if i > 0 {
			s = "\t" + s
		}
		t.write(s)
	}
	t.write("\n")
}

// Section adds an empty line and a heading.
func (t *Table) Section(title string) { t.flush(); t.write("\n" + Clean(title) + "\n") }

// Text adds a line outside the columns.
func (t *Table) Text(s string) { t.flush(); t.write(Clean(s) + "\n"); t.flush() }

func (t *Table) write(s string) {
	if t.err == nil {
		_, t.err = io.WriteString(t.w, s)
	}
}

func (t *Table) flush() {
	if t.err == nil {
		t.err = t.w.Flush()
	}
}

// Flush writes what is drawn and returns the first error met.
func (t *Table) Flush() error { t.flush(); return t.err }

// Clean replaces control characters, which a robot may have put into its words to confuse a terminal, by visible marks.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || r == '\u202e' || r == '\u2066' || r == '\u2067' || r == '\u2068':
			return '\ufffd'
		}
		return r
	}, s)
}
