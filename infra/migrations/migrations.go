// Package migrations carries the database schema: numbered SQL files, forward only, additive first, so that the previous release
// still runs. Each file belongs to one domain and creates only tables with that domain's prefix (see infra/adr).
package migrations

import "embed"

// FS holds NNNN_name.sql in goose's format.
//
//go:embed *.sql
var FS embed.FS
