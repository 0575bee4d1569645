// Prints the rows of a Parquet file as JSON; numbers of 64 bits as texts.
const [modules, file] = process.argv.slice(2)
const { asyncBufferFromFile, parquetReadObjects } = await import(modules + '/hyparquet/src/node.js')
const rows = await parquetReadObjects({ file: await asyncBufferFromFile(file) })
process.stdout.write(JSON.stringify(rows, (_, v) => (typeof v === 'bigint' ? String(v) : v)))
