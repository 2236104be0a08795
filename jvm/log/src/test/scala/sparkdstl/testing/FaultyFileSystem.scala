// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

import java.io.IOException
import java.net.URI
import java.util.Random

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/**
 * Fails, stalls and loses replies as configured by the keys in [[FaultyFileSystem]]. Faults strike
 * only when an object is published on a path that matches `fs.faulty.paths`; delays strike every matching write and
 * open.
 */
final class FaultyFileSystem extends DirectWriteFileSystem(FaultyFileSystem.Scheme) {
  import DirectWriteFileSystem.pause
  import FaultyFileSystem._

  // Set by initialize. Random is thread-safe; the scheduler decides which thread draws which number.
  private var random = new Random(0)
  private var affected = ".*".r
  private var failRatio = 0.0
  private var failWords = ""
  private var hangRatio = 0.0
  private var lostReplyRatio = 0.0
  private var hangMillis = 0L
  private var writeDelayMillis = 0L
  private var readDelayMillis = 0L

  override def initialize(name: URI, configuration: Configuration): Unit = {
    super.initialize(name, configuration)
    random = new Random(configuration.getLong(Seed, 0))
    affected = configuration.get(Paths, ".*").r
    failRatio = configuration.getDouble(FailRatio, 0)
    failWords = configuration.get(FailWords, "no reason")
    hangRatio = configuration.getDouble(HangRatio, 0)
    lostReplyRatio = configuration.getDouble(LostReplyRatio, 0)
    hangMillis = configuration.getLong(HangMillis, 0)
    writeDelayMillis = configuration.getLong(WriteDelayMillis, 0)
    readDelayMillis = configuration.getLong(ReadDelayMillis, 0)
  }

  override protected def before(operation: Operation, path: Path): Unit = operation match {
    case Operation.Open if isAffected(path) => pause(around(readDelayMillis))
    case Operation.Write if isAffected(path) => pause(around(writeDelayMillis))
    case _ =>
  }

  override protected def publishing(path: Path, bytes: Long)(publish: => Unit): Unit =
    if (!isAffected(path)) publish
    else {
      if (strikes(hangRatio)) pause(hangMillis)
      if (strikes(failRatio)) throw new IOException(s"injected: writing $path failed: $failWords")
      publish
      if (strikes(lostReplyRatio)) throw new IOException(s"injected: the reply to writing $path was lost")
    }

  private def isAffected(path: Path): Boolean = affected.matches(path.toUri.getPath)

  private def strikes(ratio: Double): Boolean = ratio > 0 && random.nextDouble() < ratio

  /** Log-normal with a 99th percentile of about six times the median, like small requests to object stores. */
  private def around(medianMillis: Long): Long =
    if (medianMillis == 0) 0 else math.round(medianMillis * math.exp(0.79 * random.nextGaussian()))
}

object FaultyFileSystem extends FileSystemScheme("faulty", classOf[FaultyFileSystem]) {

  /** Share of publications that fail without effect, 0 to 1. */
  val FailRatio = "fs.faulty.fail.ratio"

  /** The reason in the messages of failures. */
  val FailWords = "fs.faulty.fail.words"

  /** Share of publications that stall for [[HangMillis]] before they continue, 0 to 1. */
  val HangRatio = "fs.faulty.hang.ratio"
  val HangMillis = "fs.faulty.hang.ms"

  /** Share of publications that take effect and then fail, 0 to 1. */
  val LostReplyRatio = "fs.faulty.lost.reply.ratio"
  val Seed = "fs.faulty.seed"

  /** Medians of the delay of opens and publications, in milliseconds. */
  val ReadDelayMillis = "fs.faulty.read.delay.ms"
  val WriteDelayMillis = "fs.faulty.write.delay.ms"

  /** Regular expression that the whole path, without scheme, must match. */
  val Paths = "fs.faulty.paths"
}
