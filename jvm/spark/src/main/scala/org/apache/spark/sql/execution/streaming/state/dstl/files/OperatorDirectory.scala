// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.{FSDataInputStream, Path}
import org.json4s.JsonAST.{JArray, JString}
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.execution.streaming.state.dstl.runtime.CheckpointFiles

/**
 * `<root>/state/<operator>/_metadata/v2`: an operator's metadata by batch, with the full paths of its schemas. They are read below
 * this root, also after the checkpoint was moved or copied.
 */
private[files] final class OperatorDirectory(root: Path, files: CheckpointFiles) extends PlainDirectory(files) {
  import OperatorDirectory._

  override def open(file: Path): FSDataInputStream = files.open(file, read = moved)

  private def moved(content: Array[Byte]): Array[Byte] = {
    val (version, line) = new String(content, UTF_8).span(_ != '\n')
    val changed = JsonMethods.parseOpt(line).map(_.transformField { case (Schemas, JArray(paths)) =>
      Schemas -> JArray(paths.map {
        case JString(BelowRoot(path)) => JString(new Path(root, path).toString)
        case other => other
      })
    })
    changed.fold(content)(json => s"$version\n${JsonMethods.compact(json)}".getBytes(UTF_8))
  }
}

private object OperatorDirectory {
  private val Schemas = "stateSchemaFilePaths"
  private val BelowRoot = """(?s).*/(state/\d+/_stateSchema/.+)""".r
}
