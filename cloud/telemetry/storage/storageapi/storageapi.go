// Package storageapi shows operators how much the bucket holds: an operation, and a page of the console.
package storageapi

import (
	"context"
	"html/template"

	"kennel/cloud/page"
	"kennel/cloud/telemetry/storage"
	"kennel/infra/auth"
	"kennel/infra/op"
)

var list = template.Must(template.New("").Funcs(template.FuncMap{"ago": page.Ago, "size": page.Bytes, "change": page.Change}).Parse(`
<section class="card wide" aria-labelledby="h-storage">
  <h2 id="h-storage">Bucket</h2>
  {{if .}}<table class="plain"><caption class="hide">Objects in the bucket</caption>
  <thead><tr><th scope="col">Kind</th><th scope="col" class="right">Objects</th><th scope="col" class="right">Size</th><th scope="col" class="right">Change</th><th scope="col">Since</th><th scope="col">Counted</th></tr></thead>
  <tbody>{{range .}}<tr><th scope="row">{{.Name}}</th><td class="num right" data-label="Objects">{{.Objects}}</td><td class="num right" data-label="Size">{{size .Bytes}}</td><td class="num right" data-label="Change">{{change .MoreBytes}}</td><td data-label="Since">{{ago .MoreSince}}</td><td data-label="Counted">{{ago .At}}</td></tr>{{end}}</tbody></table>
  {{else}}<p class="none">Nothing counted yet. The first count is made within an hour.</p>{{end}}
</section>`))

// Operations returns the operation on the object store.
func Operations(book *storage.Book) op.List {
	return op.List{op.New(op.Spec{Route: "GET /v1/storage", Tag: "Fleet", Summary: "Show what the object store holds, by kind, and how fast it grows.", Roles: auth.Staff}.With(
		op.Command{Use: "storage", Short: "Show what the object store holds, by kind, and how fast it grows", Long: "One kind is counted at a time, each at least once an hour. CHANGE is the difference from the count of a day before.",
			Table: "KIND=.name; OBJECTS; SIZE=bytes .bytes; CHANGE=change .more_bytes; SINCE=.more_since; COUNTED=.at"}),
		func(ctx context.Context, _ op.None) ([]storage.Usage, error) { return book.Usage(ctx) })}
}

// Pages returns the page of the console.
func Pages(book *storage.Book) []page.Extra {
	return []page.Extra{{Label: "Storage", Address: "/storage", Menu: page.Cloud, Show: func(ctx context.Context) (template.HTML, error) {
		all, err := book.Usage(ctx)
		if err != nil {
			return "", err
		}
		return page.HTML(list, all)
	}}}
}
