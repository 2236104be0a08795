package sparkdstl.log.format

import java.util.UUID

/** How a segment's checkpoint id is stored. */
private[format] object IdKind {
  val None = 0
  val Uuid = 1
  val Text = 2
}

/**
 * The sections that name segments. What segments of a batch have in common is said once, or as the difference from the
 * segment before, so that a segment costs little more than its length and checksum.
 */
private[format] final class SegmentsEncoder(entries: Vector[SegmentEntry], held: Vector[HeldSnapshot]) {
  private val files =
    (entries.iterator.flatMap(_.parts).flatMap(_.file) ++ held.iterator.flatMap(_.files)).distinct.toVector
  private val stores = (entries.iterator.map(_.key) ++ held.iterator.map(_.key))
    .map(key => (key.operator, key.storeName)).distinct.toVector
  private val fileNumbers = files.zipWithIndex.toMap
  private val storeNumbers = stores.zipWithIndex.toMap

  def writeFiles(out: IndexEncoder): Unit = {
    out.number(files.size.toLong)
    files.foreach(out.text)
  }

  def writeStores(out: IndexEncoder): Unit = {
    out.number(stores.size.toLong)
    stores.foreach { case (operator, name) =>
      out.number(operator)
      out.text(name)
    }
  }

  def writeSegments(out: IndexEncoder): Unit = {
    val ends = Array.fill(files.size + 1)(LogFile.HeaderLength.toLong)
    var (partition, version, attempt) = (0L, 0L, 0L)
    out.number(entries.size.toLong)
    entries.foreach { entry =>
      val key = entry.key
      out.number(storeNumbers((key.operator, key.storeName)).toLong)
      out.signed(key.partition - partition)
      out.signed(key.version - version)
      out.signed(entry.attempt - attempt)
      partition = key.partition.toLong
      version = key.version
      attempt = entry.attempt
      out.byte(key.kind.code)
      writeQualifier(out, key.qualifier)
      out.number(entry.parts.size.toLong)
      entry.parts.foreach(writePart(out, _, ends))
    }
  }

  def writeSnapshots(out: IndexEncoder, list: SnapshotList, batch: Long): Unit = {
    out.number(batch - list.complete)
    out.number(list.plainUpTo)
    out.number(list.held.size.toLong)
    list.held.foreach { snapshot =>
      val key = snapshot.key
      out.number(storeNumbers((key.operator, key.storeName)).toLong)
      out.number(key.partition.toLong)
      out.number(key.version)
      writeQualifier(out, key.qualifier)
      out.number(batch - snapshot.batch)
      out.number(snapshot.files.size.toLong)
      snapshot.files.foreach(file => out.number(fileNumbers(file).toLong))
    }
  }

  private def writePart(out: IndexEncoder, part: SegmentPart, ends: Array[Long]): Unit = {
    val file = part.file.fold(0)(fileNumbers(_) + 1)
    out.number(file.toLong)
    out.signed(part.offset - ends(file))
    out.number(part.length.toLong)
    out.fixed32(part.crc)
    ends(file) = part.offset + part.length
  }

  private def writeQualifier(out: IndexEncoder, id: Option[String]): Unit = id match {
    case None => out.byte(IdKind.None)
    case Some(text) if isCanonicalUuid(text) =>
      out.byte(IdKind.Uuid)
      out.uuid(UUID.fromString(text))
    case Some(text) =>
      out.byte(IdKind.Text)
      out.text(text)
  }

  private def isCanonicalUuid(text: String): Boolean =
    text.length == 36 &&
      (try UUID.fromString(text).toString == text
      catch { case _: IllegalArgumentException => false })
}

/** Reads what [[SegmentsEncoder]] writes. */
private[format] final class SegmentsDecoder(files: Vector[String], stores: Vector[(Long, String)]) {
  private val ends = Array.fill(files.size + 1)(LogFile.HeaderLength.toLong)
  private var partition = 0L
  private var version = 0L
  private var attempt = 0L

  def readSegments(in: IndexDecoder): Vector[SegmentEntry] = in.many(minimumSize = 7)(readSegment(in))

  private def readSegment(in: IndexDecoder): SegmentEntry = {
    val (operator, name) = readStore(in)
    // Sums that overflow end up outside of what is allowed, or are what the writer meant.
    partition += in.signed()
    version += in.signed()
    attempt += in.signed()
    if (version < 0) throw new MalformedIndexException(s"version $version")
    val kindCode = in.byte()
    val kind = SegmentKind.fromCode(kindCode)
      .getOrElse(throw new MalformedIndexException(s"unknown kind of segment $kindCode"))
    val key = SegmentKey(operator, in.asInt(partition), name, version, readQualifier(in), kind)
    SegmentEntry(key, attempt, in.many(minimumSize = 7)(readPart(in)))
  }

  def readSnapshots(in: IndexDecoder, batch: Long): SnapshotList = {
    val complete = batch - in.number()
    val plainUpTo = in.number()
    SnapshotList(complete, plainUpTo, in.many(minimumSize = 6)(readSnapshot(in, batch)))
  }

  private def readSnapshot(in: IndexDecoder, batch: Long): HeldSnapshot = {
    val (operator, name) = readStore(in)
    val partition = in.int()
    val version = in.number()
    val key = SegmentKey(operator, partition, name, version, readQualifier(in), SegmentKind.Snapshot)
    val heldBy = batch - in.number()
    val named = in.many(minimumSize = 1) {
      val file = in.int()
      files.lift(file).getOrElse(throw new MalformedIndexException(s"file number $file of ${files.size}"))
    }
    HeldSnapshot(key, heldBy, named)
  }

  private def readStore(in: IndexDecoder): (Long, String) = {
    val number = in.int()
    stores.lift(number).getOrElse(throw new MalformedIndexException(s"store number $number of ${stores.size}"))
  }

  private def readPart(in: IndexDecoder): SegmentPart = {
    val file = in.int()
    if (file > files.size) throw new MalformedIndexException(s"file number $file of ${files.size}")
    val offset = ends(file) + in.signed()
    val length = in.int()
    ends(file) = offset + length
    SegmentPart(Option.when(file > 0)(files(file - 1)), offset, length, in.fixed32())
  }

  private def readQualifier(in: IndexDecoder): Option[String] = in.byte() match {
    case IdKind.None => None
    case IdKind.Uuid => Some(in.uuid().toString)
    case IdKind.Text => Some(in.text())
    case other => throw new MalformedIndexException(s"unknown kind of checkpoint id $other")
  }
}

private[format] object SegmentsDecoder {
  def readFiles(in: IndexDecoder): Vector[String] = in.many(minimumSize = 1)(in.text())

  def readStores(in: IndexDecoder): Vector[(Long, String)] = in.many(minimumSize = 2)((in.number(), in.text()))
}
