// Package js holds the client for JavaScript as text, for programs that serve it to browsers.
package js

import _ "embed"

// Client is kennel.mjs.
//
//go:embed kennel.mjs
var Client []byte
