//go:build !linux

package hoststats

func ssid(string) string { return "" }
