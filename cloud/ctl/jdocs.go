package ctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/infra/cli"
	"kennel/jdocs"
)

// document is one version of a document, as the public API writes it.
type document struct {
	Doc        string          `json:"doc_name"`
	Version    uint64          `json:"doc_version"`
	FmtVersion uint64          `json:"fmt_version"`
	By         string          `json:"by"`
	At         time.Time       `json:"at"`
	Deleted    bool            `json:"deleted"`
	JSON       json.RawMessage `json:"jdoc"` // absent in a list
}

func (a *app) jdocs() *cobra.Command {
	cmd := &cobra.Command{Use: "jdocs", Aliases: []string{"docs"}, Short: "Read and change a robot's documents, such as its settings",
		Example: "  kennelctl jdocs get vic:00e20100 vic.RobotSettings\n  kennelctl jdocs set vic:00e20100 vic.RobotSettings master_volume=3"}
	cmd.AddCommand(a.jdocsList(), a.jdocsGet(), a.jdocsSet(), a.jdocsHistory())
	return cmd
}

func docPath(id, doc string) string {
	return "/v1/things/" + id + "/jdocs/" + url.PathEscape(doc)
}

// ruled are the documents whose fields are known.
var ruled = []string{string(jdocs.RobotSettings), string(jdocs.RobotLifetimeStats)}

// completeSet offers what completeDoc does, then fields of the document and their values.
func (a *app) completeSet(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) < 2 {
		return a.completeDoc(cmd, args, typed)
	}
	return completeField(jdocs.Name(args[1]), typed)
}

// completeField offers the fields of a document that begin with what is typed, or the values of the field that is typed.
func completeField(name jdocs.Name, typed string) (out []string, _ cobra.ShellCompDirective) {
	field, value, ok := strings.Cut(typed, "=")
	if !ok {
		for _, f := range jdocs.Fields(name) {
			if strings.HasPrefix(f, typed) {
				out = append(out, f+"=")
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	for _, c := range jdocs.Choices(field) {
		if name == jdocs.RobotSettings && strings.HasPrefix(c, strings.ToUpper(value)) || strings.HasPrefix(c, value) {
			out = append(out, field+"="+c)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeDoc offers thing ids, then names of documents.
func (a *app) completeDoc(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return a.completeThing(cmd, args, typed)
	case 1:
		return ruled, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) jdocsList() *cobra.Command {
	return &cobra.Command{
		Use: "list THING", Short: "List a robot's documents", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeThing,
		Example: "  kennelctl jdocs list vic:00e20100",
		RunE: func(cmd *cobra.Command, args []string) error {
			docs, err := fetch[[]document](a, cmd, args[0], "/jdocs")
			if err != nil {
				return err
			}
			return docs.print(cmd, func(t *cli.Table, docs []document) {
				t.Row("DOCUMENT", "VERSION", "FORMAT", "CHANGED", "BY")
				for _, d := range docs {
					t.Row(d.Doc, d.Version, d.FmtVersion, ago(d.At), d.By)
				}
			})
		},
	}
}

func (a *app) jdocsGet() *cobra.Command {
	return &cobra.Command{
		Use: "get THING DOC", Short: "Print a document as the cloud holds it", Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeDoc,
		Example: "  kennelctl jdocs get vic:00e20100 vic.RobotSettings",
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, err := fetch[document](a, cmd, args[0], "/jdocs/"+url.PathEscape(args[1]))
			if err != nil {
				return err
			}
			return doc.print(cmd, showDocument)
		},
	}
}

func showDocument(t *cli.Table, d document) {
	t.Text(fmt.Sprintf("%s, version %d, changed %s by %s", d.Doc, d.Version, ago(d.At), d.By))
	var pretty bytes.Buffer
	_ = json.Indent(&pretty, d.JSON, "", "  ") // a part of an answer that parsed
	for line := range bytes.Lines(pretty.Bytes()) {
		t.Text(string(bytes.TrimRight(line, "\n")))
	}
}

func (a *app) jdocsSet() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "set THING DOC KEY=VALUE...", Short: "Change fields of a document", Args: cobra.MinimumNArgs(3), ValidArgsFunction: a.completeSet,
		Long: "KEY is a path of names with dots. VALUE is JSON if it is JSON, else text; null removes a field. All fields change at once or none does;\n" +
			"a connected robot takes them within a second. A document or a field that is not known is an error, unless -force is given.",
		Example: "  kennelctl jdocs set vic:00e20100 vic.RobotSettings master_volume=3\n" +
			"  kennelctl jdocs set vic:00e20100 vic.RobotSettings custom_eye_color.hue=0.4 time_zone=Europe/Berlin",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseThing(args[0])
			if err != nil {
				return err
			}
			set, err := parseSet(args[2:])
			if err != nil {
				return err
			}
			c, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			doc := answer[document]{}
			body := map[string]any{"set": set}
			if force {
				body["force"] = true
			}
			if _, err := c.do(cmd.Context(), http.MethodPatch, docPath(string(id), args[1]), body, &doc.raw); err != nil {
				return err
			}
			return doc.print(cmd, showDocument)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "set fields that no known software reads, and make documents")
	return cmd
}

func (a *app) jdocsHistory() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "history THING DOC", Short: "Show who changed a document, and when", Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeDoc,
		Example: "  kennelctl jdocs history vic:00e20100 vic.RobotSettings -limit 5",
		RunE: func(cmd *cobra.Command, args []string) error {
			docs, err := fetch[[]document](a, cmd, args[0], "/jdocs/"+url.PathEscape(args[1])+"/history?limit="+strconv.Itoa(limit))
			if err != nil {
				return err
			}
			return docs.print(cmd, func(t *cli.Table, docs []document) {
				t.Row("VERSION", "CHANGED", "BY", "DOCUMENT")
				for _, d := range docs {
					text := string(d.JSON)
					if d.Deleted {
						text = "(deleted)"
					}
					t.Row(d.Version, ago(d.At), d.By, text)
				}
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most `N` versions")
	return cmd
}

// answer is what the API said: printed as it came with -o json, read as T for people.
type answer[T any] struct{ raw json.RawMessage }

// fetch gets what is below a thing.
func fetch[T any](a *app, cmd *cobra.Command, id, path string) (answer[T], error) {
	var out answer[T]
	th, err := parseThing(id)
	if err != nil {
		return out, err
	}
	err = a.do(cmd, http.MethodGet, "/v1/things/"+string(th)+path, nil, &out.raw)
	return out, err
}

func (o answer[T]) print(cmd *cobra.Command, table func(*cli.Table, T)) error {
	if cli.JSON(cmd) {
		return cli.Print(cmd, o.raw, nil)
	}
	v, err := o.value()
	if err != nil {
		return err
	}
	return cli.Print(cmd, v, func(t *cli.Table) { table(t, v) })
}

func (o answer[T]) value() (v T, err error) {
	if err := json.Unmarshal(o.raw, &v); err != nil {
		return v, fmt.Errorf("the answer is not what this version of kennelctl understands (-o json shows it): %w", err)
	}
	return v, nil
}
