# What go build -v does, in as few words as a person wants: every hundredth package, and whatever is not a package's name.
/^go: downloading / {
	if (!fetched++) print "Fetching modules. This happens once."
	else if (fetched % 50 == 0) print "  " fetched " modules fetched"
	fflush()
	next
}
/^[A-Za-z0-9_.~\/-]+$/ {
	if (++built == 30) print "Compiling. The first time, this is about 1,100 packages and takes minutes."
	if (built % 100 == 0) print "  " built " packages compiled"
	fflush()
	next
}
{ print; fflush() }
