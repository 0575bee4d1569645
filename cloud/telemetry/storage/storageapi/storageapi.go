// Package storageapi shows operators how much is in the bucket: a page of the console.
package storageapi

import (
	"cmp"
	"context"
	"html/template"
	"strconv"
	"strings"

	"kennel/cloud/page"
	"kennel/cloud/telemetry/storage"
)

// names are those of the classes for people.
var names = map[string]string{"crash": "Crashes and symbols", "das": "Events as received", "logs": "Uploaded logs", "ota": "Release archives"}

var list = template.Must(template.New("").Funcs(template.FuncMap{"ago": page.Ago, "size": size, "more": more,
	"name": func(class string) string { return cmp.Or(names[class], class) }}).Parse(`
<section class="card wide" aria-labelledby="h-storage">
  <h2 id="h-storage">Bucket</h2>
  {{if .}}<table class="plain"><caption class="hide">Objects in the bucket</caption>
  <thead><tr><th scope="col">Kind</th><th scope="col" class="right">Objects</th><th scope="col" class="right">Size</th><th scope="col" class="right">Change</th><th scope="col">Since</th><th scope="col">Counted</th></tr></thead>
  <tbody>{{range .}}<tr><th scope="row">{{name .Class}}</th><td class="num right" data-label="Objects">{{.Objects}}</td><td class="num right" data-label="Size">{{size .Bytes}}</td><td class="num right" data-label="Change">{{more .MoreBytes}}</td><td data-label="Since">{{ago .MoreSince}}</td><td data-label="Counted">{{ago .At}}</td></tr>{{end}}</tbody></table>
  {{else}}<p class="none">Nothing counted yet. The first count is made within an hour.</p>{{end}}
</section>`))

// size writes a number of bytes as people read it: 12 B, 3.4 MB.
func size(n int64) string {
	f, unit := float64(n), "B"
	for _, next := range []string{"kB", "MB", "GB", "TB"} {
		if f < 1000 {
			break
		}
		f, unit = f/1000, next
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") + " " + unit
}

func more(n int64) string {
	if n < 0 {
		return "−" + size(-n)
	}
	return "+" + size(n)
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
