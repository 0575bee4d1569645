// Package cli holds the parts that the command lines of all programs share, on top of cobra:
//
//   - a long flag works with one dash or two, at any place: `kennelctl -onebox DIR robots list -o json`;
//   - exit codes say what class of failure it was (ExitOK to ExitUnavailable);
//   - errors are one line on standard error, "program: what was wrong; what was expected", or JSON with -o json;
//   - a result is one value, printed as a table for people or as JSON for programs (Print);
//   - a mistake on the command line is explained in plain words, with what was expected and the nearest name that is known;
//   - completion, help and version commands and -version exist everywhere, and each help has an example (Lint proves it).
//
// A program's main is one line, and a test calls the same function:
//
//	func main() { os.Exit(ctl.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }
package cli
