// Package hostile tests the house against malformed input, hostile voices, and a flood that a stop must get through.
package hostile
