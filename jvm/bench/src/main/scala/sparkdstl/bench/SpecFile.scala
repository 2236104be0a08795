package sparkdstl.bench

import java.io.File

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/** A specification that Python has written, as JSON. */
final class SpecFile(file: File) {
  private val node = new ObjectMapper().readTree(file)

  /** @throws IllegalArgumentException when there is none */
  def field(name: String): JsonNode =
    Option(node.get(name)).getOrElse(throw new IllegalArgumentException(s"$file has no field $name"))

  def texts(name: String): Map[String, String] =
    field(name).properties.asScala.map(entry => entry.getKey -> entry.getValue.asText).toMap

  /** None for a local disk. */
  def delays: Option[RequestDelays] = Option(field("delays")).filterNot(_.isNull).map { delays =>
    RequestDelays(
      delays.get("medianMs").asDouble,
      delays.get("p99Ms").asDouble,
      delays.get("tailRatio").asDouble,
      delays.get("tailMs").asDouble,
      delays.get("bytesPerSecond").asLong,
      delays.get("seed").asLong,
      delays.get("networkBytesPerSecond").asLong
    )
  }
}
