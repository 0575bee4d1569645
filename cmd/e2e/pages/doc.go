// Package pages tests who may open what and what people see: every route by every role, the pages in a browser, complaints and troubles in plain words.
package pages
