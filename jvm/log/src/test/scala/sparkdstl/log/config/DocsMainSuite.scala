// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.config

import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.shaded.com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

class DocsMainSuite extends AnyFunSuite {
  private val Reference = "docs/configuration.md"
  private val Options = "python/src/spark_dstl/options.json"

  DocsMain.files.foreach { case (name, content) =>
    test(s"`make docs` would not change $name") {
      assert(Files.readString(Paths.get("../..", name)) == content)
    }
  }

  test("the reference has one row of five cells for each option") {
    val rows = content(Reference).linesIterator.filter(_.startsWith("| `")).toSeq
    assert(rows.map(_.split('|')(1).trim) == LogOptions.all.map(option => s"`${option.key}`"))
    rows.foreach(row => assert(row.count(_ == '|') == 6, row))
  }

  test("options.json is valid JSON and holds each option's properties") {
    val options = new ObjectMapper().readTree(content(Options)).elements.asScala.toSeq
    assert(options.map(_.get("key").asText) == LogOptions.all.map(_.key))
    options.zip(LogOptions.all).foreach { case (node, option) =>
      assert(Option(node.get("default").textValue) == option.default)
      assert(node.get("defaultText").asText == option.defaultText)
      assert(node.get("type").asText == option.optionType.name)
      assert(node.get("doc").asText == option.doc)
      checkBounds(node, option.optionType)
    }
  }

  private def checkBounds(node: JsonNode, optionType: OptionType[_]): Assertion = {
    def bounds(low: Long, high: Long): Assertion = {
      assert(node.get("min").isTextual && node.get("max").isTextual)
      def value(name: String): Option[Any] = optionType.parse(node.get(name).textValue)
      assert(value("min").contains(low) && value("max").contains(high))
    }
    optionType match {
      case OptionType.Size(low, high) => bounds(low, high)
      case OptionType.Duration(low, high) => bounds(low, high)
      case OptionType.Number(low, high) => bounds(low.toLong, high.toLong)
      case choice: OptionType.Choice[_] =>
        assert(node.get("values").elements.asScala.map(_.asText).toSeq == choice.names)
      case _ => assert(!node.has("min") && !node.has("values"))
    }
  }

  private def content(name: String): String = DocsMain.files.toMap.apply(name)
}
