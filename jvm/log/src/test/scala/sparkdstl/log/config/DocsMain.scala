// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.config

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

/**
 * Writes the files generated from [[LogOptions]]: `docs/configuration.md`, and the Python package's `options.json`. Its argument
 * is the repository's root.
 */
object DocsMain {

  def main(arguments: Array[String]): Unit = files.foreach { case (name, content) =>
    Files.writeString(Paths.get(arguments.head, name), content, UTF_8)
  }

  private[config] def files: Seq[(String, String)] =
    Seq(
      "docs/configuration.md" -> reference,
      "python/src/spark_dstl/options.json" -> json
    )

  private def reference: String = {
    val rows = LogOptions.all.map { option =>
      val default = option.default.fold(option.defaultText)(text => s"`$text`")
      s"| `${option.key}` | $default | ${sentence(
          option.optionType.allowed
        )} | ${option.doc} | ${option.counterpart.fold("–")(key => s"`$key`")} |"
    }
    s"""# Configuration
       |
       |<!-- Generated from LogOptions.scala by `make docs`; edit there. -->
       |
       |All keys are SQL configurations below `${LogOptions.Prefix}`. They are read when a query starts: set them on the
       |session, with `--conf`, in `spark-defaults.conf`, or through `spark_dstl.configure(builder, ...)`, where
       |`upload_max_in_flight="100m"` stands for `upload.maxInFlight`. `dstl config` prints what to set, and checks it. An
       |unknown key below the prefix or a value that is not allowed fails the query at its start.
       |
       |Sizes are in Spark's notation (`512k`, `10m`, `1g`; a plain number is bytes), durations too (`500ms`, `10s`,
       |`10min`; a plain number is milliseconds).
       |
       || Key | Default | Allowed | What it does | In Flink |
       ||---|---|---|---|---|
       |${rows.mkString("\n|")}
       |
       |Compression follows Spark: segments hold the changelogs exactly as Spark's writer made them, so
       |`spark.sql.streaming.stateStore.compression.codec` decides.
       |""".stripMargin
  }

  private def sentence(text: String): String = s"${text.head.toUpper}${text.tail}"

  private def json: String = {
    val objects = LogOptions.all.map { option =>
      val fields = Seq(
        "key" -> quote(option.key),
        "type" -> quote(option.optionType.name),
        "default" -> option.default.fold("null")(quote),
        "defaultText" -> quote(option.defaultText)
      ) ++
        option.optionType.json ++
        Seq("doc" -> quote(option.doc))
      fields.map { case (name, value) => s"${quote(name)}: $value" }.mkString("  { ", ", ", " }")
    }
    objects.mkString("[\n", ",\n", "\n]\n")
  }

  private def quote(text: String): String =
    text.map {
      case '"' => "\\\""
      case '\\' => "\\\\"
      case c => c.toString
    }.mkString("\"", "", "\"")
}
