package ctl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kennel/infra/cli"
	"kennel/infra/errs"
)

// operation is one of the cloud's API, as the cloud itself describes it: it may be newer or older than this program.
type operation struct {
	Method  string `json:"method"`
	Path    string `json:"path"` // a template, such as /v1/things/{thing}
	Tag     string `json:"tag"`
	Summary string `json:"summary"`
}

func (a *app) operations(ctx context.Context) ([]operation, error) {
	d, err := a.described(ctx)
	return d.operations(""), err
}

// operations lists those that contain a word, by path.
func (d description) operations(word string) (out []operation) {
	word = strings.ToLower(word)
	for path, methods := range d.Paths {
		for method, x := range methods {
			o := operation{strings.ToUpper(method), path, strings.Join(x.Tags, " "), x.Summary}
			if strings.Contains(strings.ToLower(o.Method+" "+o.Path+" "+o.Tag+" "+o.Summary), word) {
				out = append(out, o)
			}
		}
	}
	slices.SortFunc(out, func(x, y operation) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.Method, y.Method))
	})
	return out
}

// serves reports whether path is one of the operation.
func (o operation) serves(path string) bool {
	want, got := strings.Split(o.Path, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, got, func(w, g string) bool { return w == g || strings.HasPrefix(w, "{") && g != "" })
}

func (a *app) rawAPI() *cobra.Command {
	list := shows(a, describe("list [WORD]", "List operations of the API, or those that contain a word", "api list", "api list webhook"),
		func(ctx context.Context, args []string) (reply[[]operation], error) {
			d, err := a.described(ctx)
			return answerOf(append([]operation{}, d.operations(strings.Join(args, " "))...), err)
		},
		rows("METHOD|PATH|GROUP|DESCRIPTION", func(o operation) cells { return cells{o.Method, o.Path, o.Tag, o.Summary} }))
	return group(&cobra.Command{Use: "api", Short: "Call any operation of the API",
		Long:    "For operations without a command of their own. The list comes from the cloud, which may be newer than this program.",
		Example: "  kennelctl api list webhook\n  kennelctl api call GET /v1/things limit=2"}, list, a.apiCall())
}

// call holds the flags of a request.
type call struct {
	file, media string
	query       []string
	all         bool
}

func (a *app) apiCall() *cobra.Command {
	var c call
	cmd := &cobra.Command{Use: "call METHOD PATH [KEY=VALUE...]", Short: "Call an operation and print its answer",
		Long: "KEY=VALUE is a query parameter for GET and DELETE, and a field of the body otherwise. VALUE is JSON or plain text.\n" +
			"JSON answers are indented; others are printed as they arrive.",
		Example: "  kennelctl api call GET /v1/things limit=2 -all\n  kennelctl api call PATCH /v1/account given_name=Ada\n" +
			"  kennelctl api call PUT /v1/cohorts/lab -data lab.json\n  kennelctl api call POST /v1/things/batch -data robots.csv -type text/csv"}
	cmd.ValidArgsFunction = a.completeOperation
	a.runs(cmd, func(cmd *cobra.Command, args []string) error {
		return a.call(cmd, c, strings.ToUpper(args[0]), args[1], args[2:])
	})
	f := cmd.Flags()
	f.StringVar(&c.file, "data", "", "send `FILE` as the body; -: standard input")
	f.StringVar(&c.media, "type", "application/json", "media `TYPE` of the body")
	f.StringArrayVar(&c.query, "query", nil, "query parameter `KEY=VALUE`, beside fields of the body; may be repeated")
	f.BoolVar(&c.all, "all", false, "fetch all pages of a list and print them as one")
	return cmd
}

// request returns the address and the body.
func (c call) request(cmd *cobra.Command, method, path string, fields []string) (address string, body io.Reader, err error) {
	query, set := url.Values{}, map[string]json.RawMessage{}
	pairs := c.query
	if method == http.MethodGet || method == http.MethodDelete {
		pairs = slices.Concat(pairs, fields)
	} else if set, err = parseSet(fields); err != nil {
		return "", nil, err
	}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return "", nil, cli.Usage("%.80q: want KEY=VALUE, such as limit=3", pair)
		}
		query.Add(key, value)
	}
	switch {
	case len(set) > 0 && c.file != "":
		return "", nil, cli.Usage("%s and -data exclude each other: both are the body", strings.Join(slices.Sorted(maps.Keys(set)), ", "))
	case len(set) > 0:
		b, err := json.Marshal(set)
		if err != nil {
			return "", nil, err
		}
		body = bytes.NewReader(b)
	case c.file == "-":
		body = cmd.InOrStdin()
	case c.file != "":
		b, err := os.ReadFile(c.file)
		if err != nil {
			return "", nil, errs.New(errs.Invalid, "%w", err)
		}
		body = bytes.NewReader(b)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, body, nil
}

func (a *app) call(cmd *cobra.Command, c call, method, path string, fields []string) error {
	address, body, err := c.request(cmd, method, path, fields)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	known, err := a.operations(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(known, func(o operation) bool { return o.Method == method && o.serves(path) }) {
		return errs.Coded(errs.NotFound, "no_operation", "this cloud has no operation %s %.120s; kennelctl api list shows them", method, path)
	}
	to, err := a.connect(ctx)
	if err != nil {
		return err
	}
	var list []json.RawMessage
	for {
		head := http.Header{"Accept": {"*/*"}}
		if body != nil {
			head.Set("Content-Type", c.media)
		}
		resp, err := to.send(ctx, method, address, body, head)
		if err != nil {
			return err
		}
		page, next, err := answered(cmd.OutOrStdout(), resp)
		switch {
		case ctx.Err() != nil: // interrupted: what came is printed
			return nil
		case err != nil:
			return err
		case page == nil: // printed, or nothing to print
			return nil
		case !c.all:
			return printIndented(cmd.OutOrStdout(), page)
		}
		var items []json.RawMessage
		if err := json.Unmarshal(page, &items); err != nil {
			return errs.New(errs.Invalid, "-all: the answer is no list")
		}
		if list = append(list, items...); next == "" || len(items) == 0 {
			all, err := json.Marshal(append([]json.RawMessage{}, list...))
			if err != nil {
				return err
			}
			return printIndented(cmd.OutOrStdout(), all)
		}
		address = next
	}
}

// answered returns an answer in JSON, and the address of the page after it. It copies others to out.
func answered(out io.Writer, resp *http.Response) (page []byte, next string, err error) {
	defer resp.Body.Close()
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != "application/json" && !strings.HasSuffix(media, "+json") {
		_, err = io.Copy(out, resp.Body)
		return nil, "", err
	}
	page, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if link, ok := strings.CutPrefix(resp.Header.Get("Link"), "<"); ok {
		next, _, _ = strings.Cut(link, `>; rel="next"`)
	}
	return page, next, err
}

func printIndented(out io.Writer, answer []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(answer), "", "  "); err != nil {
		return errs.New(errs.Corrupt, "the answer is not JSON: %w", err)
	}
	b.WriteByte('\n')
	_, err := out.Write(b.Bytes())
	return err
}

// completeOperation offers methods, then the paths that have one.
func (a *app) completeOperation(cmd *cobra.Command, args []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		return []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, cobra.ShellCompDirectiveNoFileComp
	}
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return offers(cmd, nil, typed, func(ctx context.Context, _ []string) (reply[[]operation], error) {
		all, err := a.operations(ctx)
		return answerOf(slices.DeleteFunc(all, func(o operation) bool { return !strings.EqualFold(o.Method, args[0]) }), err)
	}, func(o operation) (string, string) { return o.Path, o.Summary })
}
